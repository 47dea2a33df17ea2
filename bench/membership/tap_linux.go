package membership

import (
	"bytes"
	"net/netip"
	"sync"

	"weft/link"
)

// tap is an underlay that may be cut from others, and that records some of what it sends.
type tap struct {
	*link.UDP
	mu       sync.Mutex
	cut      map[netip.AddrPort]bool
	sent     int
	recorded []datagram
	astray   map[netip.AddrPort]*astray // bytes that were sent to somebody who has forged a registration
}

// astray are bytes to an address: of a host that knew the peer, or did not.
type astray struct {
	known, unknown uint64
	knew           bool
}

// note has the bytes counted that are sent to an address.
func (t *tap) note(to netip.AddrPort, knew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.astray == nil {
		t.astray = make(map[netip.AddrPort]*astray)
	}
	if t.astray[to] == nil {
		t.astray[to] = &astray{}
	}
	t.astray[to].knew = knew
}

// datagram is one that was sent.
type datagram struct {
	to    netip.AddrPort
	bytes []byte
}

// Bounds of what is recorded.
const (
	recordEach = 50
	recordMost = 64
)

// Send is stack.Underlay's.
func (t *tap) Send(path int, to netip.AddrPort, tos byte, parts [][]byte, size int) error {
	t.mu.Lock()
	cut := t.cut[to]
	if a := t.astray[to]; a != nil {
		n := uint64(0)
		for _, p := range parts {
			n += uint64(len(p))
		}
		if a.knew {
			a.known += n
		} else {
			a.unknown += n
		}
	}
	if t.sent++; !cut && t.sent%recordEach == 0 {
		b := bytes.Join(parts, nil)
		if size > 0 && size < len(b) {
			b = b[:size]
		}
		if len(t.recorded) < recordMost {
			t.recorded = append(t.recorded, datagram{})
		}
		t.recorded[t.sent/recordEach%len(t.recorded)] = datagram{to, b}
	}
	t.mu.Unlock()
	if cut {
		return nil
	}
	return t.UDP.Send(path, to, tos, parts, size)
}

func (t *tap) setCut(to netip.AddrPort, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut == nil {
		t.cut = make(map[netip.AddrPort]bool)
	}
	t.cut[to] = cut
}

// recording returns what has been sent to an address.
func (t *tap) recording(to netip.AddrPort) (list [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.recorded {
		if d.to == to {
			list = append(list, d.bytes)
		}
	}
	return list
}
