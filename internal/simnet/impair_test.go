package simnet

import (
	"math"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

// rack is two hosts on one edge switch: a path of two links.
type rack struct {
	*Network
	a, b     topology.Node
	up, down topology.LinkID
	sent     uint32
}

func newRack(t *testing.T, c Config) *rack {
	t.Helper()
	topo := fatTree(t, 4)
	a, b := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3")
	if c.QueueBytes == 0 {
		c.QueueBytes = 1 << 28
	}
	return &rack{Network: network(t, topo, c), a: a, b: b,
		up: topology.LinkID(a.ID), down: topology.LinkID(b.ID)}
}

func (r *rack) send(count, size int, now time.Duration) {
	for range count {
		r.Inject(r.a.ID, udp(r.a.Addr, r.b.Addr, 1, r.sent, size), now)
		r.sent++
	}
}

func (r *rack) impair(t *testing.T, id topology.LinkID, d Direction, i Impairment) {
	t.Helper()
	if err := r.Impair(id, d, i); err != nil {
		t.Fatal(err)
	}
}

// near reports whether got is within five standard deviations of what n draws
// with probability p bring.
func near(got uint64, n int, p float64) bool {
	mean := float64(n) * p
	return math.Abs(float64(got)-mean) <= 5*math.Sqrt(mean*(1-p))
}

func TestImpair_rejectsWhatMakesNoSense(t *testing.T) {
	r := newRack(t, Config{})
	for _, c := range []struct {
		field string
		i     Impairment
	}{
		{"Loss", Impairment{Loss: -0.1}},
		{"Loss", Impairment{Loss: 1.1}},
		{"Corrupt", Impairment{Corrupt: math.NaN()}},
		{"Duplicate", Impairment{Duplicate: 2}},
		{"Delay", Impairment{Delay: -1}},
		{"RateBits", Impairment{RateBits: 1e12 + 1}},
	} {
		if err := r.Impair(r.up, Upward, c.i); err == nil || !strings.Contains(err.Error(), "Impairment."+c.field) {
			t.Errorf("%+v: error %v does not name %s", c.i, err, c.field)
		}
	}
}

func TestImpair_loss(t *testing.T) {
	const count, p = 20000, 0.03
	r := newRack(t, Config{Seed: 1})
	r.impair(t, r.up, Upward, Impairment{Loss: p})
	r.impair(t, r.up, Downward, Impairment{Loss: 1}) // of the other direction
	r.send(count, 100, 0)
	got := drain(r.Network)
	s := r.Stats()
	if !near(s.Dropped[Lost], count, p) || len(got)+int(s.Dropped[Lost]) != count || !s.conserved() {
		t.Errorf("%d delivered, %+v", len(got), s)
	}
	// What is lost has taken its time: the last that arrives is not early.
	last := got[len(got)-1]
	if want := time.Duration(payloadNumber(last.packet)+2) * 114 * 80; last.at != want {
		t.Errorf("packet %d arrives at %v, want %v", payloadNumber(last.packet), last.at, want)
	}
}

func TestImpair_corrupt(t *testing.T) {
	const count, size, p = 20000, 100, 0.5
	for _, c := range []struct {
		name string
		link func(*rack) (topology.LinkID, Direction)
		// The switch drops what has a broken header; the host is given all.
		dropped float64
	}{
		{"before the switch", func(r *rack) (topology.LinkID, Direction) { return r.up, Upward }, p * 20 / size},
		{"before the host", func(r *rack) (topology.LinkID, Direction) { return r.down, Downward }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRack(t, Config{Seed: 2})
			id, d := c.link(r)
			r.impair(t, id, d, Impairment{Corrupt: p})
			r.send(count, size, 0)
			changed := map[int]int{} // position of the changed bit: how often
			for _, got := range drain(r.Network) {
				want := udp(r.a.Addr, r.b.Addr, 1, 0, size)
				want[8]-- // TTL
				seal(want)
				bits := 0
				for i, b := range got.packet {
					if i >= 28 && i < 32 {
						continue // the number, which differs anyhow
					}
					for k := range 8 {
						if (b^want[i])>>k&1 == 1 {
							changed[8*i+k]++
							bits++
						}
					}
				}
				if bits > 1 {
					t.Fatalf("%d bits changed in one packet", bits)
				}
			}
			s := r.Stats()
			if !near(s.Corrupted, count, p) || !near(s.Dropped[Malformed], count, c.dropped) || !s.conserved() {
				t.Errorf("%+v", s)
			}
			header := 0
			for at, n := range changed {
				if at < 160 {
					header++
				}
				if n > 60 { // 12.5 are expected
					t.Errorf("bit %d changed %d times", at, n)
				}
			}
			if want := c.dropped == 0; header > 0 != want || len(changed) < 600 {
				t.Errorf("%d different bits changed, %d of them in the header", len(changed), header)
			}
		})
	}
}

func TestImpair_duplicate(t *testing.T) {
	const count, p = 20000, 0.1
	r := newRack(t, Config{Seed: 3})
	r.impair(t, r.down, Downward, Impairment{Duplicate: p})
	r.send(count, 100, 0)
	times := map[uint32]int{}
	for i, d := range drain(r.Network) {
		times[payloadNumber(d.packet)]++
		if i > 0 && d.at == 0 {
			t.Fatal("a copy took no time")
		}
	}
	twice := uint64(0)
	for number, n := range times {
		if n > 2 {
			t.Fatalf("packet %d came %d times", number, n)
		}
		if n == 2 {
			twice++
		}
	}
	s := r.Stats()
	if len(times) != count || twice != s.Duplicated || !near(twice, count, p) || s.Delivered != count+twice || !s.conserved() {
		t.Errorf("%d packets, %d twice, %+v", len(times), twice, s)
	}
}

// Copies go through the queue, which may have no room for them.
func TestImpair_duplicatesMayFindTheQueueFull(t *testing.T) {
	r := newRack(t, Config{QueueBytes: 5 * 114})
	r.impair(t, r.up, Upward, Impairment{Duplicate: 1})
	r.send(3, 100, 0)
	drain(r.Network)
	if s := r.Stats(); s.Duplicated != 3 || s.Dropped[QueueFull] != 1 || s.Delivered != 5 || !s.conserved() {
		t.Errorf("%+v", s)
	}
}

func TestImpair_delay(t *testing.T) {
	const extra = 70 * time.Microsecond
	r := newRack(t, Config{Delay: time.Microsecond})
	r.send(1, 100, 0)
	before := drain(r.Network)[0].at
	now := time.Millisecond
	r.impair(t, r.up, Upward, Impairment{Delay: extra})
	r.send(1, 100, now)
	r.impair(t, r.up, Upward, Impairment{})
	r.send(1, 100, now)
	got := drain(r.Network)
	if payloadNumber(got[0].packet) != 2 || payloadNumber(got[1].packet) != 1 {
		t.Error("the packet that was delayed is not overtaken")
	}
	if late := got[1].at - now - before; late != extra {
		t.Errorf("delayed by %v, want %v", late, extra)
	}
}

func TestImpair_rate(t *testing.T) {
	r := newRack(t, Config{RateBits: 1e9})
	r.impair(t, r.down, Downward, Impairment{RateBits: 8e6}) // a byte per microsecond
	r.send(3, 86, 0)
	for i, d := range drain(r.Network) {
		if want := 800*time.Nanosecond + time.Duration(i+1)*100*time.Microsecond; d.at != want {
			t.Errorf("packet %d arrives at %v, want %v", i, d.at, want)
		}
	}
	r.impair(t, r.down, Downward, Impairment{})
	r.send(1, 86, time.Second)
	if d := drain(r.Network)[0]; d.at != time.Second+1600*time.Nanosecond {
		t.Errorf("back at the old rate, a packet arrives at %v", d.at)
	}
}

// A queue that has built up at a low rate is full at any higher one, and stays
// in order.
func TestImpair_rateRisesOverAQueue(t *testing.T) {
	r := newRack(t, Config{RateBits: 1e12, QueueBytes: 10000})
	r.impair(t, r.up, Upward, Impairment{RateBits: 1})
	r.send(1, 86, 0) // takes 800 s
	r.impair(t, r.up, Upward, Impairment{})
	r.send(1, 86, 0)
	r.send(1, 86, 800*time.Second)
	got := drain(r.Network)
	if s := r.Stats(); s.Dropped[QueueFull] != 1 || len(got) != 2 || !s.conserved() {
		t.Fatalf("%d delivered, %+v", len(got), s)
	}
	if payloadNumber(got[0].packet) != 0 || payloadNumber(got[1].packet) != 2 {
		t.Errorf("order %d, %d", payloadNumber(got[0].packet), payloadNumber(got[1].packet))
	}
}

func TestImpair_down(t *testing.T) {
	r := newRack(t, Config{Delay: time.Millisecond})
	r.send(2, 100, 0)
	r.Advance(500*time.Microsecond, nil) // both are on the wire
	r.impair(t, r.up, Upward, Impairment{Down: true})
	r.send(3, 100, 500*time.Microsecond)
	if got := drain(r.Network); len(got) != 0 {
		t.Errorf("%d packets over a dead link", len(got))
	}
	if s := r.Stats(); s.Dropped[LinkDown] != 5 || !s.conserved() {
		t.Errorf("%+v", s)
	}
	r.impair(t, r.up, Upward, Impairment{})
	r.send(1, 100, time.Second)
	if got := drain(r.Network); len(got) != 1 {
		t.Errorf("%d packets over the link after its repair", len(got))
	}
}

// Draws come from the seed, and only impaired links draw: what happens on one
// does not depend on the traffic of those that are sound.
func TestImpair_drawsFromTheSeedOnly(t *testing.T) {
	run := func(seed uint64, others int) (lost []uint32) {
		r := newRack(t, Config{Seed: seed})
		r.impair(t, r.up, Upward, Impairment{Loss: 0.2})
		for range others {
			r.Inject(r.b.ID, udp(r.b.Addr, r.a.Addr, 1, 0, 100), 0)
		}
		r.send(300, 100, 0)
		arrived := map[uint32]bool{}
		for _, d := range drain(r.Network) {
			if d.host == r.b.ID {
				arrived[payloadNumber(d.packet)] = true
			}
		}
		for n := range uint32(300) {
			if !arrived[n] {
				lost = append(lost, n)
			}
		}
		return lost
	}
	same := func(a, b []uint32) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	if a, b := run(1, 0), run(1, 50); !same(a, b) {
		t.Errorf("lost %v, with other traffic %v", a, b)
	}
	if a, b := run(1, 0), run(2, 0); same(a, b) {
		t.Error("the seed makes no difference")
	}
}

// FuzzImpair lets links corrupt, repeat and lose at will; every packet must be
// accounted for.
func FuzzImpair(f *testing.F) {
	topo := fatTree(f, 4)
	src, far, core := host(f, topo, "h0.0.2"), host(f, topo, "h3.1.3"), host(f, topo, "3.0")
	plain := udp(src.Addr, far.Addr, 1, 2, 60)
	f.Add(tunnel(f, src.Addr, core.Addr, plain), uint64(1), 0.5, 0.5, 0.5)
	f.Add(plain, uint64(2), 0.0, 1.0, 1.0)
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, loss, corrupt, duplicate float64) {
		n := network(t, topo, Config{Seed: seed, QueueBytes: 10000})
		for l := range topo.Links() {
			for _, d := range []Direction{Upward, Downward} {
				if n.Impair(l.ID, d, Impairment{Loss: loss, Corrupt: corrupt, Duplicate: duplicate}) != nil {
					return
				}
			}
		}
		for range 20 {
			n.Inject(src.ID, b, 0)
		}
		drain(n)
		if s := n.Stats(); s.Injected != 20 || s.InFlight != 0 || !s.conserved() {
			t.Errorf("%+v", s)
		}
	})
}
