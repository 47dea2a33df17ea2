package stack

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weft/flowcell"
)

func TestHost_prestoOnTheWire(t *testing.T) {
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
			case begins && names[i] != next(names[i-1]):
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

// setClock is a clock that is set by hand.
type setClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *setClock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *setClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}

func (c *setClock) AfterFunc(time.Duration, func()) Timer { panic("egress sets no timer") }

// Time passes for egress only when the test says so.
func TestHost_letflowOnTheWire(t *testing.T) {
	w := newWire(t)
	clock := new(setClock)
	a, b := newHost(t, w, addrA, func(c *Config) { c.Policy = "letflow" }), newHost(t, w, addrB)
	a.egress.mu.Lock()
	a.egress.clock = clock
	a.egress.mu.Unlock()
	c1, c2 := connect(t, a, b)
	c2.SetReadDeadline(time.Now().Add(30 * time.Second))
	from := flowcell.AddressFrom(addrA)
	data := func(s sighting) bool { return s.packet.Flow.Src == from && s.packet.Payload > 0 }
	buf := make([]byte, 20_000)
	last, changes := "", 0
	for round := range 60 {
		pause := []time.Duration{400 * time.Microsecond, 600 * time.Microsecond}[round%2]
		clock.pass(pause)
		seen := len(w.sightings(data))
		if _, err := c1.Write(buf); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(buf); {
			k, err := c2.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += k
		}
		for _, by := range bounces(w.sightings(data)[seen:]) {
			if by != last && last != "" {
				if changes++; pause <= 500*time.Microsecond {
					t.Fatalf("round %d: from %s to %s after %v", round, last, by, pause)
				}
			}
			last = by
			pause = 0
		}
	}
	if changes < 10 { // of 30 pauses three in four should do
		t.Errorf("the path changed %d times in 60 rounds", changes)
	}
}
