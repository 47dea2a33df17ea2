package simnet

import (
	"math/big"
	"testing"
	"time"

	"weft/topology"
)

// TestPort_keepsItsRateExactly fills a link back to back and computes with
// arbitrary precision when each packet must arrive, at rates whose bit times
// are no whole nanoseconds.
func TestPort_keepsItsRateExactly(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3")
	const delay = 3 * time.Microsecond
	for _, rate := range []int64{999_999_937, 20_000_000, 7_654_321, 1e12} {
		n := network(t, topo, Config{RateBits: rate, QueueBytes: 1 << 27, Delay: delay})
		const count, size = 20000, 77
		for i := range uint32(count) {
			n.Inject(src.ID, udp(src.Addr, dst.Addr, 1, i, size), 0)
		}
		got := drain(n)
		if len(got) != count {
			t.Fatalf("rate %d: %d delivered, want %d", rate, len(got), count)
		}
		for i, d := range got {
			// Two hops, store and forward: the second link starts when the
			// first has finished, so a packet is out at most a nanosecond's
			// rounding before the ideal and never after it.
			ideal := new(big.Int).Mul(big.NewInt(int64(i+2)*(size+FrameOverhead)*8), big.NewInt(1e9))
			want := time.Duration(ideal.Div(ideal, big.NewInt(rate)).Int64()) + 2*delay
			if early := want - d.at; early < 0 || early > 2 {
				t.Fatalf("rate %d: packet %d arrives at %d ns, want %d", rate, i, d.at, want)
			}
		}
	}
}

func TestPort_rateOnTheWire(t *testing.T) {
	p := port{limit: 1 << 20}
	p.setRate(3) // a bit takes 333,333,333⅓ ns
	for i := 1; i <= 3000; i++ {
		done, ok := p.send(1, 0)
		want := time.Duration(int64(i) * 8 * int64(time.Second) / 3)
		if !ok || done != want {
			t.Fatalf("byte %d leaves at %d, want %d", i, done, want)
		}
	}
}

func TestPort_dropsAtTheTail(t *testing.T) {
	steps := []struct {
		at   time.Duration
		size int
		ok   bool
	}{
		{0, 400, true},
		{0, 600, true}, // full to the byte
		{0, 1, false},
		{1, 2, false}, // one byte has left
		{1, 1, true},
		{500, 500, false}, // 501 remain
		{500, 499, true},
		{1500, 1000, true}, // empty
		{5000, 1001, false},
	}
	p := port{limit: 1000}
	p.setRate(8e9) // a byte takes a nanosecond
	for i, s := range steps {
		if _, ok := p.send(s.size, s.at); ok != s.ok {
			t.Errorf("step %d, %d bytes at %d: accepted %v, want %v", i, s.size, s.at, ok, s.ok)
		}
	}
	if p.stats != (PortStats{Packets: 5, Bytes: 2500, Drops: 4, MaxQueue: 1000}) {
		t.Errorf("counters %+v", p.stats)
	}
}

// TestPort_boundsEveryQueue overloads one link from three sides; the network
// may hold no more than its queues do.
func TestPort_boundsEveryQueue(t *testing.T) {
	topo := fatTree(t, 4)
	const queue = 10000
	n := network(t, topo, Config{RateBits: 10e6, QueueBytes: queue})
	dst := host(t, topo, "h2.0.2")
	for i := range uint32(3000) {
		now := time.Duration(i) * 500 * time.Microsecond
		n.Advance(now, func(topology.NodeID, []byte) {})
		for _, name := range []string{"h0.0.2", "h1.0.2", "h2.1.2"} {
			src := host(t, topo, name)
			n.Inject(src.ID, udp(src.Addr, dst.Addr, 1, i, 1000), now)
		}
	}
	drain(n)
	full := 0
	for _, p := range n.ports {
		if p.stats.MaxQueue > queue {
			t.Errorf("a queue of %d bytes held %d", queue, p.stats.MaxQueue)
		}
		if p.stats.Drops > 0 {
			full++
			if p.stats.MaxQueue <= queue-1014 {
				t.Errorf("a queue of %d dropped 1014 bytes, yet was never longer than %d", queue, p.stats.MaxQueue)
			}
		}
	}
	if full == 0 {
		t.Error("no queue was ever full")
	}
}
