package spray

import (
	"math/rand/v2"
	"testing"
	"time"

	"weft/flowcell"
	"weft/policy"
)

// cellsByHand is how a host cuts, slow and plain: it remembers the packets of the
// flowcell under way.
type cellsByHand struct {
	bytes    int
	payloads []int
	last     time.Duration
}

// begins reports whether a flowcell begins with a packet.
func (c *cellsByHand) begins(payload int, again bool, now time.Duration) bool {
	sum := payload
	for _, n := range c.payloads {
		sum += n
	}
	timedOut := again && now-c.last > flowcell.LeastTimeout
	begins := len(c.payloads) == 0 || sum > c.bytes || len(c.payloads) == flowcell.MaxIndex+1 || timedOut
	if begins {
		c.payloads = nil
	}
	c.payloads, c.last = append(c.payloads, payload), now
	return begins
}

// stream draws packets of data: most are full, some are sent again, some after a
// timeout.
type stream struct{ end uint32 }

func (s *stream) packet(rng *rand.Rand, now time.Duration) (seq uint32, payload int, again bool, at time.Duration) {
	at = now + time.Duration(1+rng.IntN(20))*time.Microsecond
	if rng.IntN(50) == 0 {
		at += time.Duration(rng.IntN(10)) * time.Millisecond
	}
	payload = 1460
	if rng.IntN(8) == 0 {
		payload = 1 + rng.IntN(1460)
	}
	if again = rng.IntN(3) == 0; again {
		return s.end - uint32(payload), payload, again, at
	}
	s.end += uint32(payload)
	return s.end - uint32(payload), payload, again, at
}

// What hosts write into packets is the same whoever chooses the path.
func TestNumbers_areThoseOfHostsPolicies(t *testing.T) {
	const seed, bytes = 5, 20_000
	rng := rand.New(rand.NewPCG(seed, 0))
	hosts := newHosts(t, HostsConfig{Topology: parse(t, leafSpine), Policy: "presto", Options: policy.Options{FlowcellBytes: bytes}})
	unit := newSwitch(t, SwitchConfig{Topology: parse(t, leafSpine), Name: switchLocal, FlowcellBytes: bytes}, queues{}).Unit()
	var f Flow
	hosts.Open(&f, 0, 12, tuple(0, 12, 1))
	numbers, hand := NewNumbers(f.hash), cellsByHand{bytes: bytes}
	var data stream
	now, cell, timeouts := time.Duration(0), uint16(f.hash)%flowcell.Cells-1, 0
	for i := range 5000 {
		seq, payload, again, at := data.packet(rng, now)
		if again && at-now > flowcell.LeastTimeout {
			timeouts++
		}
		now = at
		if hand.begins(payload, again, now) {
			cell = (cell + 1) % flowcell.Cells
		}
		_, want := hosts.Data(&f, seq, payload, payload+40, now)
		got := numbers.Next(unit, seq, payload, now)
		if got != want || got.Cell() != cell || int(got.Index()) != len(hand.payloads)-1 {
			t.Fatalf("seed %d, packet %d: %d.%d; presto's hosts %d.%d, by hand %d.%d", seed, i,
				got.Cell(), got.Index(), want.Cell(), want.Index(), cell, len(hand.payloads)-1)
		}
	}
	if timeouts < 10 {
		t.Errorf("seed %d: %d packets are sent again after a timeout", seed, timeouts)
	}
}

func TestNumbers_whatIsSentAgainAfterATimeoutBegins(t *testing.T) {
	unit := flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: flowcell.FlowcellBytes}
	for _, c := range []struct {
		pause time.Duration
		seq   uint32
		want  flowcell.Number
	}{
		{flowcell.LeastTimeout + 1, 0, flowcell.MakeNumber(8, 0)},
		{flowcell.LeastTimeout, 0, flowcell.MakeNumber(7, 1)},
		{time.Second, 1460, flowcell.MakeNumber(7, 1)},
	} {
		n := NewNumbers(7)
		n.Next(unit, 0, 1460, time.Second)
		if got := n.Next(unit, c.seq, 1460, time.Second+c.pause); got != c.want {
			t.Errorf("after %v, %d: %d.%d, want %d.%d", c.pause, c.seq, got.Cell(), got.Index(), c.want.Cell(), c.want.Index())
		}
	}
}

// Under all other models hosts count packets.
func TestNumbers_countWhereFlowcellsAreNoUnit(t *testing.T) {
	for _, name := range SwitchNames() {
		unit := newSwitch(t, SwitchConfig{Topology: parse(t, leafSpine), Name: name}, queues{}).Unit()
		if cells := name == switchLocal || name == switchLuopan; cells != unit.Numbers() {
			t.Errorf("%s: the unit is a %s", name, unit)
			continue
		} else if cells {
			continue
		}
		numbers, want := NewNumbers(77), flowcell.Number(0)
		for i := range 200 {
			want = want.Count()
			if got := numbers.Next(unit, uint32(i%3), 1460, time.Duration(i)*time.Second); got != want {
				t.Fatalf("%s: packet %d has %d, want %d", name, i, got, want)
			}
		}
	}
}

// A switch chooses anew with the first packet of a host's flowcell that comes to it,
// and at no other time. Another port is the best with every packet; some packets are
// lost before the switch, and flows come mixed.
func TestUp_flowcellsAreTheHosts(t *testing.T) {
	const seed, bytes, flows = 11, 20_000, 6
	topo := parse(t, leafSpine)
	sh := shapeOf(topo)
	for _, name := range []string{switchLocal, switchLuopan} {
		rng := rand.New(rand.NewPCG(seed, 0))
		q := queues{}
		s := newSwitch(t, SwitchConfig{Topology: topo, Name: name, Seed: seed, Samples: 4, FlowcellBytes: bytes, Expiry: time.Microsecond}, q)
		var numbers [flows]Numbers
		var hands [flows]cellsByHand
		var streams [flows]stream
		var ports [flows]int // -1: the flowcell's first packet has yet to come
		for i := range flows {
			numbers[i], hands[i] = NewNumbers(mix(seed, uint64(i))), cellsByHand{bytes: bytes}
		}
		best, borders, lostFirst := 0, 0, 0
		now := time.Duration(0)
		for i := range 20_000 {
			f := rng.IntN(flows)
			seq, payload, again, at := streams[f].packet(rng, now)
			now = at
			begins := hands[f].begins(payload, again, now)
			if begins {
				ports[f] = -1
			}
			n := numbers[f].Next(s.Unit(), seq, payload, now)
			if rng.IntN(10) == 0 {
				if begins {
					lostFirst++
				}
				continue
			}
			best = (best + 1 + rng.IntN(3)) % 4
			for port := range 4 {
				q[upPort(sh.uplink(16))+2*int32(port)] = 30_000
			}
			q[upPort(sh.uplink(16))+2*int32(best)] = 0
			if ports[f] < 0 {
				ports[f] = best
				borders++
			}
			p := Packet{Src: 0, Dst: 12, Hash: mix(seed, uint64(f)), Bytes: int32(payload + 40), Numbered: true, Number: n}
			if got := s.Up(16, 0, &p, now); got != ports[f] {
				t.Fatalf("%s, seed %d, packet %d: %d.%d of flow %d takes port %d, want %d (begins %v, best %d)",
					name, seed, i, n.Cell(), n.Index(), f, got, ports[f], begins, best)
			}
		}
		if borders < 1000 || lostFirst < 50 {
			t.Errorf("%s, seed %d: %d flowcells, the first packet lost of %d: the test tests little", name, seed, borders, lostFirst)
		}
	}
}
