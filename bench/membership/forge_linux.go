package membership

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
)

// attacked reports whether datagrams are forged to a host. All that others refuse is a fault.
func (b *bed) attacked(h *host) bool { return h.n%2 == 0 }

// forge sends what is not to be accepted to hosts that stay, from the address that all have.
func (b *bed) forge() {
	r := rand.New(rand.NewPCG(b.o.Seed, 1<<22))
	s, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		b.failf("forge: %v", err)
		return
	}
	defer s.Close()
	for number := uint64(1 << 40); b.pause(20 * time.Millisecond); number++ {
		all := b.staying()
		to, as := all[r.IntN(len(all))], all[r.IntN(len(all))]
		if to == as || !b.attacked(to) {
			continue
		}
		p, ok := as.present(to.name)
		if !ok || p.Key == nil {
			continue
		}
		var d []byte
		count := &b.foreign.Forged
		switch inner := packet(as.address, to.address, beacon(forged, as.name, number, b.now())); number % 5 {
		case 0: // by a key of nobody's
			wrong := *p.Key
			r := rand.New(rand.NewPCG(number, 1))
			for i := range wrong.Secret {
				wrong.Secret[i] = byte(r.Uint32())
			}
			d = seal(wrong, as.name, to.name, inner)
		case 1: // by none
			d = make([]byte, encap.UDPOverhead, encap.UDPOverhead+len(inner))
			encap.PutUDP(d, encap.UDPHeader{Number: 1})
			d = append(d, inner...)
		case 2: // by the key of another pair
			if q, ok := as.present(all[(slices.Index(all, to)+1)%len(all)].name); ok && q.Key != nil && *q.Key != *p.Key {
				d = seal(*q.Key, as.name, to.name, inner)
			}
		case 3:
			d, count = b.byFormer(as, to, inner), &b.foreign.Former
		case 4:
			if list := as.tap.recording(to.tap.LocalAddr()); len(list) > 0 {
				d, count = slices.Clone(list[r.IntN(len(list))]), &b.foreign.Replayed
				if r.IntN(2) == 0 {
					d[r.IntN(len(d))] ^= 1 << r.IntN(8)
					count = &b.foreign.Forged
				}
			}
		}
		if d == nil {
			continue
		}
		if _, err := s.WriteToUDPAddrPort(d, to.tap.LocalAddr()); err != nil {
			b.notef("forge: %v", err)
			continue
		}
		b.mu.Lock()
		*count++
		b.mu.Unlock()
	}
}

// byFormer seals by a key that the receiver has forgotten.
func (b *bed) byFormer(as, to *host, inner []byte) []byte {
	as.mu.Lock()
	former := slices.Clone(as.former)
	as.mu.Unlock()
	p, ok := to.present(as.name)
	if !ok {
		return nil
	}
	for _, f := range slices.Backward(former) {
		if f.peer == to.name && f.key != *p.Key && !slices.Contains(p.Accept, f.key) {
			return seal(f.key, as.name, to.name, inner)
		}
	}
	return nil
}

// seal makes a datagram, nil if that cannot be.
func seal(key encap.UDPKey, from, to string, inner []byte) []byte {
	s, err := encap.NewSealer(key, from, to, time.Now(), [3]byte{1, 2, 3})
	if err != nil {
		return nil
	}
	d := append(make([]byte, s.Overhead(), s.Overhead()+len(inner)+16), inner...)
	if err := s.Seal(d, encap.UDPHeader{Number: 1}); err != nil {
		return nil
	}
	return d
}

// packet is a UDP packet to the port of beacons.
func packet(from, to netip.Addr, payload []byte) []byte {
	b := make([]byte, 28, 28+len(payload))
	b[0], b[8], b[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(payload)))
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.AsSlice())
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
	binary.BigEndian.PutUint16(b[20:], beaconPort)
	binary.BigEndian.PutUint16(b[22:], beaconPort)
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(payload))) // without a checksum
	return append(b, payload...)
}

// control forges by right keys, at the end: else nothing is shown by what was not accepted.
func (b *bed) control() error {
	s, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return err
	}
	defer s.Close()
	all := b.staying()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		arrived := 0
		for i, to := range all {
			as := all[(i+1)%len(all)]
			p, ok := as.present(to.name)
			if !ok || p.Key == nil || as == to {
				continue
			}
			b.foreign.ControlSent++
			if _, err := s.WriteToUDPAddrPort(seal(*p.Key, as.name, to.name, packet(as.address, to.address, beacon(control, as.name, 0, b.now()))), to.tap.LocalAddr()); err != nil {
				return err
			}
			to.mu.Lock()
			arrived += to.control
			to.mu.Unlock()
		}
		if arrived > 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
