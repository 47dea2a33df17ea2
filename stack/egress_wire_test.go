package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/flowcell"
)

func TestHost_prestoOnTheWire(t *testing.T) {
	after := map[string]string{"3.0": "3.1", "3.1": "3.2", "3.2": "3.3", "3.3": "3.0"} // as round robin goes
	w := newWire(t)
	presto := func(c *Config) { c.Policy = "presto" }
	a, b := newHost(t, w, addrA, presto), newHost(t, w, addrB, presto)
	transfer(t, a, b, 4_000_000)
	from := flowcell.AddressFrom(addrA)
	data := w.sightings(func(s sighting) bool { return s.packet.Flow.Src == from && s.packet.Payload > 0 })
	names := bounces(data)
	cells, bytes := 0, 0
	highest := data[0].packet.Seq
	for i, s := range data {
		n, payload := flowcell.Number(s.packet.ID), int(s.packet.Payload)
		end := s.packet.Seq + uint32(payload)
		again := int32(end-highest) <= 0 // after a timeout, on a slow machine: it begins a cell
		if !again {
			highest = end
		}
		begins := i == 0
		if i > 0 {
			last := flowcell.Number(data[i-1].packet.ID)
			begins = n.Cell() != last.Cell()
			switch {
			case begins && (n.Cell() != (last.Cell()+1)%flowcell.Cells || bytes+payload <= 65536 && last.Index() < flowcell.MaxIndex && !again):
				t.Fatalf("packet %d: cell %d after %d of %d bytes", i, n.Cell(), last.Cell(), bytes)
			case begins && names[i] != after[names[i-1]]:
				t.Fatalf("cell %d by %s after %s", n.Cell(), names[i], names[i-1])
			case !begins && (n.Index() != last.Index()+1 || names[i] != names[i-1]):
				t.Fatalf("packet %d of cell %d: index %d by %s after %d by %s", i, n.Cell(), n.Index(), names[i], last.Index(), names[i-1])
			}
		}
		if begins {
			if cells++; n.Index() != 0 {
				t.Fatalf("cell %d begins with index %d", n.Cell(), n.Index())
			}
			bytes = 0
		}
		if bytes += payload; bytes > 65536 {
			t.Fatalf("cell %d has %d bytes", n.Cell(), bytes)
		}
	}
	if cells < 4_000_000/65536 {
		t.Errorf("%d cells", cells)
	}
	if s := b.Stats(); s.Ingress.BadChecksum+s.Ingress.Malformed > 0 {
		t.Errorf("what was numbered arrives broken: %+v", s.Ingress)
	}
	for _, s := range w.sightings(func(s sighting) bool { return s.packet.Payload == 0 && !isReset(s) }) {
		if s.packet.ID != 0 {
			t.Fatalf("a packet without data is numbered: %+v", s.packet)
		}
	}
}

// isReset reports a RST. What comes late for a connection that is gone, on a slow
// machine, netstack answers with one that has an ID and no DF, and that is not
// numbered.
func isReset(s sighting) bool { return s.packet.Flags&flowcell.FlagRST != 0 }

// What lets a Host write into the ID of netstack's packets: netstack does not
// use it, and sets DF.
func TestHost_netstackLeavesTheIDFree(t *testing.T) {
	w := newWire(t)
	var mu sync.Mutex
	var wrong []string
	w.delay = func(s sighting, b []byte, send func([]byte)) {
		mu.Lock()
		defer mu.Unlock()
		if s.packet.IsTCP() && !isReset(s) && (s.packet.ID != 0 || b[6] != 0x40) {
			wrong = append(wrong, fmt.Sprintf("%x", b[:20]))
		}
		send(b)
	}
	ecmp := func(c *Config) { c.Policy = "ecmp" } // the others write
	transfer(t, newHost(t, w, addrA, ecmp), newHost(t, w, addrB, ecmp), 200_000)
	mu.Lock()
	defer mu.Unlock()
	if len(wrong) > 0 {
		t.Errorf("%d TCP packets with an ID or without DF, such as %s", len(wrong), wrong[0])
	}
}

// A flow changes its path after pauses of more than 500 µs, and never after shorter
// ones. Time passes only when the test says so.
func TestHost_letflowOnTheWire(t *testing.T) {
	w, a, b := newVirtual(t, 1, func(c *Config) { c.Policy = "letflow" })
	c1, c2 := virtualConnect(t, w, a, b)
	var used []netip.Addr // bouncing switches of data packets, in their order
	w.seen = func(outer, inner []byte) {
		var pkt flowcell.Packet
		if pkt.Parse(inner) == nil && pkt.Payload > 0 && pkt.Flow.Src == flowcell.AddressFrom(addrA) {
			used = append(used, netip.AddrFrom4([4]byte(outer[16:20])))
		}
	}
	buf := make([]byte, 20_000)
	last, changes := netip.Addr{}, 0
	for round := range 60 {
		pause := []time.Duration{400 * time.Microsecond, 600 * time.Microsecond}[round%2]
		w.Run(pause)
		used = used[:0]
		sent, read := 0, 0
		for began := w.Now(); read < len(buf); w.Run(wireDelay) {
			if n, err := c1.Write(buf[sent:]); sent < len(buf) && err != nil && !errors.Is(err, syscall.EAGAIN) {
				t.Fatal(err)
			} else {
				sent += n
			}
			n, err := c2.Read(buf[:len(buf)-read])
			if err != nil && !errors.Is(err, syscall.EAGAIN) {
				t.Fatal(err)
			}
			if read += n; w.Now()-began > time.Second {
				t.Fatalf("round %d: %d bytes of %d have arrived", round, read, len(buf))
			}
		}
		for _, by := range used {
			if by != last && last.IsValid() {
				if changes++; pause <= 500*time.Microsecond {
					t.Fatalf("round %d: from %v to %v after %v", round, last, by, pause)
				}
			}
			last, pause = by, 0
		}
	}
	if changes < 10 { // of 30 pauses three in four should do
		t.Errorf("the path changed %d times in 60 rounds", changes)
	}
}
