package membership

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// beaconPort is where hosts receive beacons.
const beaconPort = 9

// A beacon is a sign of life: its kind, the sender's name, a number, and when it was sent.
const (
	genuine = 'g'
	forged  = 'f'
	control = 'c'

	beaconSize = 1 + nameSize + 8 + 8
	nameSize   = 6
)

func beacon(kind byte, name string, number uint64, now time.Duration) []byte {
	b := append([]byte{kind}, name[:nameSize]...)
	b = binary.BigEndian.AppendUint64(b, number)
	return binary.BigEndian.AppendUint64(b, uint64(now))
}

// tell sends beacons to some of the peers, until the host is closed.
func (h *host) tell() {
	for number := uint64(1); ; number++ {
		select {
		case <-h.ends:
			return
		case <-time.After(beaconEach):
		}
		h.mu.Lock()
		var to []int
		for name := range h.peers {
			n := 0
			fmt.Sscanf(name, "h%d", &n)
			if to = append(to, n); len(to) == beaconPeers { // maps come in any order
				break
			}
		}
		h.mu.Unlock()
		for _, n := range to {
			h.beacons.WriteTo(beacon(genuine, h.name, number, h.b.now()), net.UDPAddrFromAddrPort(netip.AddrPortFrom(addressOf(n), beaconPort)))
		}
	}
}

const (
	beaconEach  = 200 * time.Millisecond
	beaconPeers = 4
)

// hear judges each beacon that is accepted.
func (h *host) hear() {
	b := make([]byte, 100)
	for {
		n, from, err := h.beacons.ReadFrom(b)
		if err != nil {
			return
		}
		h.judge(b[:n], from)
	}
}

func (h *host) judge(b []byte, from net.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wrong := func(format string, args ...any) {
		h.accepted += uint64(len(b))
		if h.told == "" {
			h.told = fmt.Sprintf(format, args...)
		}
	}
	if len(b) != beaconSize {
		wrong("%d bytes of %v are no beacon", len(b), from)
		return
	}
	name, number, sent := string(b[1:1+nameSize]), binary.BigEndian.Uint64(b[1+nameSize:]), time.Duration(binary.BigEndian.Uint64(b[9+nameSize:]))
	if b[0] == control {
		h.control++
		return
	}
	if b[0] == forged {
		wrong("a forged datagram of %s was accepted", name)
		return
	}
	if gone, ok := h.removed[name]; ok && sent > gone {
		wrong("a datagram of %s was accepted that it sent %v after it had been removed", name, sent-gone)
	}
	if h.seen[name] == nil {
		h.seen[name] = make(map[uint64]bool)
	}
	at := number<<40 | uint64(sent/time.Microsecond)&(1<<40-1) // a host that begins anew counts anew
	if h.seen[name][at] {
		wrong("a datagram of %s was accepted twice", name)
	}
	h.seen[name][at] = true
}
