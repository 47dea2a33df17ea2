package stack

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum" // One spine's links are smaller than all others: its switch says so, of a packet

	"weft/encap"
)

func TestHost_learnsThePathMTU(t *testing.T) {
	w := newWire(t)
	const mtu = 1400
	small, tooLong := fatTree.Paths(0, 15).Addr(2), 0
	w.delay = func(s sighting, packet []byte, send func([]byte)) {
		if s.bounce != small || len(packet)+encap.Overhead <= mtu {
			send(packet)
			return
		}
		w.mu.Lock()
		back := w.ends[netip.AddrFrom4([4]byte(packet[12:16]))]
		tooLong++
		w.mu.Unlock()
		back.Write([][]byte{switchError(3, 4, mtu, s.bounce, packet, 548)}, 0)
	}
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	transfer(t, a, b, 2_000_000)
	s := a.Stats().Ingress
	if s.Relayed == 0 || s.Relayed != uint64(tooLong) {
		t.Errorf("%d packets were too long; %+v", tooLong, s)
	}
	// Only what was on its way when the first error came could be too long, too.
	if tooLong > 100 {
		t.Errorf("%d packets were too long", tooLong)
	}
}

// Nobody can make a Host send a byte a packet.
func TestHost_doesNotBelieveTinyMTUs(t *testing.T) {
	w := newWire(t)
	h := newHost(t, w, addrA)
	plain := func(kind, code byte, mtu uint16) []byte {
		b := append(make([]byte, 28), dataPacket(1, 100)[:48]...)
		b[0], b[8], b[9] = 0x45, 63, 1
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], []byte{10, 0, 2, 1})
		self := addrA.As4()
		copy(b[16:20], self[:])
		b[20], b[21] = kind, code
		binary.BigEndian.PutUint16(b[26:], mtu)
		binary.BigEndian.PutUint16(b[22:], ^checksum.Checksum(b[20:], 0))
		return fixed(b)
	}
	dropped := uint64(0)
	for _, c := range []struct {
		kind, code byte
		mtu        uint16
		drop       bool
	}{
		{3, 4, 1400, false}, {3, 4, 552, false}, {3, 4, 551, true}, {3, 4, 68, true}, {3, 4, 0, true},
		{3, 3, 0, false}, {11, 4, 0, false}, {8, 4, 0, false},
	} {
		h.Receive(plain(c.kind, c.code, c.mtu))
		if c.drop {
			dropped++
		}
		if s := h.Stats().Ingress; s.PathErrors != dropped {
			t.Errorf("type %d, code %d, MTU %d: %+v", c.kind, c.code, c.mtu, s)
		}
	}
}
