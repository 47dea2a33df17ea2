package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv6"

	"weft/internal/checksum"
	"weft/link"
	"weft/topology"
)

// admission finds out whether the kernel lets IPv6 packets in that come by the TUN. A
// firewall that checks reverse paths strictly, as firewalld does unless it is told otherwise,
// drops them, since the way back leads out of the uplink. A datagram that seems to be from
// another rack goes into the TUN, and must come out of a socket.
type admission struct {
	tun    *link.TUN
	socket *net.UDPConn
	packet []byte // behind link.SuperHeadroom; ends in a token
	shut   bool   // nothing was let in when it was proved
	asked  time.Time
	other  int // answers in a row that are not as they were then
}

const (
	admissionEvery  = 2 * time.Second
	admissionWait   = 100 * time.Millisecond
	admissionMisses = 3 // in a row, after which nothing is let in
	admissionHits   = 5 // in a row, after which packets are let in again

	tokenLen     = 8
	datagramLen6 = 40 + 8 + tokenLen
)

// errShut says that packets from the TUN do not arrive.
var errShut = errors.New("IPv6 packets that come in by the TUN are dropped here")

// errOpen says that they arrive again. The daemon has to bring its parts up anew.
var errOpen = errors.New("IPv6 packets that come in by the TUN arrive again")

// openAdmission returns one for a host's address, and a view of the fabric from there.
func openAdmission(tun *link.TUN, own netip.Addr, t *topology.Topology) (*admission, error) {
	from, ok := stranger(t)
	if !ok {
		return nil, errors.New("there is no other rack")
	}
	socket, err := net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0)))
	if err != nil {
		return nil, err
	}
	port := uint16(socket.LocalAddr().(*net.UDPAddr).Port)
	a := &admission{tun: tun, socket: socket, packet: make([]byte, link.SuperHeadroom+datagramLen6)}
	b := a.packet[link.SuperHeadroom:]
	b[0], b[6], b[7] = 0x60, protoUDP, 64
	binary.BigEndian.PutUint16(b[4:], 8+tokenLen)
	copy(b[8:], from.AsSlice())
	copy(b[24:], own.AsSlice())
	binary.BigEndian.PutUint16(b[40:], port)
	binary.BigEndian.PutUint16(b[42:], port)
	binary.BigEndian.PutUint16(b[44:], 8+tokenLen)
	if _, err := rand.Read(b[48:]); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	if err := a.onlyToken(); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	sum := ^checksum.Fold(checksum.Sum(b[8:], protoUDP+8+tokenLen)) // RFC 8200 §8.1
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[46:], sum)
	return a, nil
}

const protoUDP = 17

// onlyToken has the kernel drop all that comes to the socket without the token: strangers
// could fill it otherwise, and the daemon would take IPv6 for shut out.
func (a *admission) onlyToken() error {
	const header = 8 // of UDP, where a socket's filter begins to look
	token := a.packet[len(a.packet)-tokenLen:]
	code, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: header, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(token), SkipTrue: 3},
		bpf.LoadAbsolute{Off: header + 4, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(token[4:]), SkipTrue: 1},
		bpf.RetConstant{Val: datagramLen6},
		bpf.RetConstant{},
	})
	if err != nil {
		return err
	}
	return ipv6.NewPacketConn(a.socket).SetBPF(code)
}

// stranger returns an address of another rack, whether somebody has it or not.
func stranger(t *topology.Topology) (a netip.Addr, ok bool) {
	for edge := range t.Racks() {
		if list := t.RackPrefixesOf(edge, true); len(list) > 0 && !t.Paths(0, edge).Direct() {
			p := list[0]
			if a = p.Addr().Next(); !p.Contains(a) {
				a = p.Addr()
			}
			return a, true
		}
	}
	return a, false
}

// prove waits until a datagram arrives, or fails with errShut.
func (a *admission) prove() error {
	for range admissionMisses {
		if err := a.ask(time.Now()); err != nil {
			return err
		}
		for end := time.Now().Add(admissionWait); time.Now().Before(end); {
			if a.heard(end) {
				return nil
			}
		}
	}
	return errShut
}

// check is prove without much waiting: call it often. It fails with errShut when nothing
// arrives any more, and with errOpen when packets arrive that did not when it was proved.
func (a *admission) check(now time.Time) error {
	if now.Sub(a.asked) < admissionEvery {
		return nil
	}
	if a.heard(now.Add(time.Millisecond)) != a.shut { // it is there, if it ever comes
		a.other = 0
	} else if a.other++; a.shut && a.other >= admissionHits {
		return errOpen
	} else if !a.shut && a.other >= admissionMisses {
		return errShut
	}
	if err := a.ask(now); !a.shut {
		return err
	}
	return nil
}

func (a *admission) ask(now time.Time) error {
	a.asked = now
	if _, err := a.tun.Write([][]byte{a.packet}, link.SuperHeadroom); err != nil {
		return fmt.Errorf("%w: %w", errShut, err)
	}
	return nil
}

// heard reports whether a datagram has arrived by a deadline, and takes it. What came before
// the filter was there does not count.
func (a *admission) heard(by time.Time) bool {
	a.socket.SetReadDeadline(by)
	b := make([]byte, tokenLen+1)
	for {
		n, err := a.socket.Read(b)
		if err != nil {
			return false
		}
		if string(b[:n]) == string(a.packet[len(a.packet)-tokenLen:]) {
			return true
		}
	}
}

func (a *admission) close() error {
	if a == nil {
		return nil
	}
	return a.socket.Close()
}
