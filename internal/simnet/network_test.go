package simnet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/topology"
)

func TestNew_refusesBadConfig(t *testing.T) {
	topo := fatTree(t, 2)
	for _, c := range []Config{
		{},
		{RateBits: -1},
		{RateBits: 1e12 + 1},
		{RateBits: 1, QueueBytes: -1},
		{RateBits: 1, QueueBytes: 1<<28 + 1},
		{RateBits: 1, Delay: -1},
	} {
		if _, err := New(topo, c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestNew_hostsHaveAQueueOfTheirOwn(t *testing.T) {
	topo := fatTree(t, 4)
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h0.0.3")
	const frame = 100 + FrameOverhead
	for _, c := range []struct {
		queue, host    int
		delivered      uint64
		rate           int64 // of the switch's port
		whereTheyStuck string
	}{
		{10 * frame, 0, 10, 100e6, "both alike"},
		{10 * frame, 25 * frame, 25, 100e6, "the host's is longer"},
		{10 * frame, 25 * frame, 10, 1, "the switch's is not"},
	} {
		n := network(t, topo, Config{QueueBytes: c.queue, HostQueueBytes: c.host})
		if err := n.Impair(topology.LinkID(dst.ID), Downward, Impairment{RateBits: c.rate}); err != nil {
			t.Fatal(err)
		}
		for i := range uint32(30) {
			n.Inject(src.ID, udp(src.Addr, dst.Addr, 1, i, 100), 0)
		}
		drain(n)
		if got := n.Stats().Delivered; got != c.delivered {
			t.Errorf("%s: %d delivered, want %d", c.whereTheyStuck, got, c.delivered)
		}
	}
	if _, err := New(topo, Config{RateBits: 1, HostQueueBytes: -1}); err == nil {
		t.Error("HostQueueBytes of -1: no error")
	}
}

// TestAdvance_pathOfEveryBounce sends a packet from every host (of the larger
// fabric, every fifth) to every other over every bouncing switch, and compares the links that counted it with the
// path that topology says.
func TestAdvance_pathOfEveryBounce(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		topo := fatTree(t, k)
		n := network(t, topo, Config{Delay: time.Microsecond})
		number := uint32(0)
		for src := range topo.Hosts() {
			for dst := range topo.Hosts() {
				if src.ID == dst.ID || k > 4 && src.ID%5 != 0 {
					continue
				}
				paths := topo.Paths(src.ID, dst.ID)
				bounces := paths.Live
				if paths.Direct() {
					bounces = []int{-1}
				}
				for _, b := range bounces {
					number++
					plain := udp(src.Addr, topo.EmbeddedAddr(dst.ID), 1, number, 100)
					sent, via := plain, topo.EdgeOf(src.ID)
					if b >= 0 {
						sent, via = tunnel(t, src.Addr, paths.Addr(b), plain), paths.Bounce(b)
					}
					want, err := topo.Path(src.ID, dst.ID, via)
					if err != nil {
						t.Fatal(err)
					}
					before := linkPackets(topo, n)
					n.Inject(src.ID, sent, n.now)
					got := drain(n)
					if len(got) != 1 || got[0].host != dst.ID {
						t.Fatalf("k=%d %s to %s via %s: delivered %v", k, src.Name, dst.Name, topo.Node(via).Name, got)
					}
					// All hops but the host's own take one off the TTL in the
					// outer header until the bounce, in the inner one from it.
					hops := len(want.Links) - 1
					if b >= 0 {
						hops = len(want.Links) / 2
					}
					plain[8] -= byte(hops)
					if string(seal(plain)) != string(got[0].packet) {
						t.Fatalf("k=%d %s to %s: packet changed:\n% x\n% x", k, src.Name, dst.Name, got[0].packet, plain)
					}
					for i, l := range want.Links {
						from := want.Hops[i]
						if topo.Link(l).A == from {
							before[2*l]++
						} else {
							before[2*l+1]++
						}
					}
					if after := linkPackets(topo, n); !slices.Equal(after, before) {
						t.Fatalf("k=%d %s to %s via %s: links counted %v, want %v", k, src.Name, dst.Name, topo.Node(via).Name, after, before)
					}
				}
			}
		}
	}
}

func linkPackets(topo *topology.Topology, n *Network) []uint64 {
	counts := make([]uint64, 2*topo.NumLinks())
	for l := range topo.Links() {
		up, down := n.Link(l.ID)
		counts[2*l.ID], counts[2*l.ID+1] = up.Packets, down.Packets
	}
	return counts
}

// TestAdvance_ordersAndConserves loads a fabric with random sprayed traffic,
// broken packets among it, and checks at every step that no packet is
// unaccounted for, and that those of one flow over one bounce stay in order.
func TestAdvance_ordersAndConserves(t *testing.T) {
	topo := fatTree(t, 4)
	rng := rand.New(rand.NewPCG(3, 4))
	n := network(t, topo, Config{RateBits: 25e6, QueueBytes: 8000, Delay: 5 * time.Microsecond})
	var now time.Duration
	number := uint32(0)
	last := map[string]uint32{}
	deliver := func(dst topology.NodeID, b []byte) {
		// The source port is the path's number.
		key := fmt.Sprint(b[12:16], dst, b[20:22])
		if got := payloadNumber(b); got <= last[key] {
			t.Errorf("%s: packet %d after %d", key, got, last[key])
		}
		last[key] = payloadNumber(b)
	}
	for range 20000 {
		now += time.Duration(rng.IntN(30)) * time.Microsecond
		src := topology.NodeID(rng.IntN(topo.NumHosts()))
		dst := topology.NodeID(rng.IntN(topo.NumHosts()))
		path := -1
		paths := topo.Paths(src, dst)
		if !paths.Direct() {
			path = paths.Live[rng.IntN(len(paths.Live))]
		}
		number++
		b := udp(topo.Node(src).Addr, topo.Node(dst).Addr, uint16(path), number, 40+rng.IntN(1400))
		if path >= 0 {
			b = tunnel(t, topo.Node(src).Addr, paths.Addr(path), b)
		}
		if rng.IntN(50) == 0 {
			b[rng.IntN(20)] ^= 1 << rng.IntN(8)
		}
		n.Inject(src, b, now)
		if rng.IntN(3) == 0 {
			n.Advance(now, deliver)
		}
		if s := n.Stats(); !s.conserved() {
			t.Fatalf("lost count: %+v", s)
		}
	}
	n.Advance(now+time.Minute, deliver)
	s := n.Stats()
	if _, busy := n.NextDeadline(); busy || s.InFlight != 0 || !s.conserved() {
		t.Errorf("after a minute: busy %v, %+v", busy, s)
	}
	if s.Delivered < 10000 || s.Dropped[Malformed] == 0 || s.Dropped[QueueFull] == 0 {
		t.Errorf("the traffic does not exercise the test: %+v", s)
	}
	var drops uint64
	for l := range topo.Links() {
		up, down := n.Link(l.ID)
		drops += up.Drops + down.Drops
	}
	if drops != s.Dropped[QueueFull] {
		t.Errorf("ports count %d drops, the network %d", drops, s.Dropped[QueueFull])
	}
}

// TestAdvance_spreadsFlows checks that flows without a tunnel are spread over
// all cores: were the switches' hashes alike, half of them would stay idle.
func TestAdvance_spreadsFlows(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2} {
		topo := fatTree(t, 4)
		n := network(t, topo, Config{Seed: seed, QueueBytes: 1 << 28})
		const flows = 4000
		src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
		for port := range uint16(flows) {
			for range 2 { // both packets of a flow go the same way
				n.Inject(src.ID, udp(src.Addr, dst.Addr, port, 0, 60), 0)
			}
		}
		if got := len(drain(n)); got != 2*flows {
			t.Fatalf("%d delivered, want %d", got, 2*flows)
		}
		for l := range topo.Links() {
			up, _ := n.Link(l.ID)
			if topo.Node(l.B).Layer != topology.LayerCore || up.Packets == 0 {
				continue
			}
			if up.Packets%2 != 0 {
				t.Errorf("seed %d: a flow was split over two cores", seed)
			}
			if flow := up.Packets / 2; flow < flows/4*8/10 || flow > flows/4*12/10 {
				t.Errorf("seed %d: %s carries %d of %d flows", seed, topo.Node(l.B).Name, flow, flows)
			}
		}
	}
}

func TestAdvance_avoidsLinksThatAreDown(t *testing.T) {
	topo := fatTree(t, 4)
	core, err := topo.Lookup("3.2")
	if err != nil {
		t.Fatal(err)
	}
	broken := topo.WithoutNode(core.ID)
	n := network(t, broken, Config{QueueBytes: 1 << 28})
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	for port := range uint16(200) {
		n.Inject(src.ID, udp(src.Addr, dst.Addr, port, 0, 60), 0)
	}
	if got := len(drain(n)); got != 200 {
		t.Errorf("%d of 200 delivered", got)
	}
	for _, p := range topo.Ports(core.ID) {
		if up, down := n.Link(p.Link); up.Packets+down.Packets != 0 {
			t.Errorf("dead link %d carried packets", p.Link)
		}
	}
}

// TestAdvance_isDeterministic runs one load twice and compares every delivery
// and counter; another seed must give another run.
func TestAdvance_isDeterministic(t *testing.T) {
	run := func(seed uint64) string {
		topo := fatTree(t, 4)
		rng := rand.New(rand.NewPCG(5, 6))
		n := network(t, topo, Config{RateBits: 30e6, QueueBytes: 20000, Delay: time.Microsecond, Seed: seed})
		trace := sha256.New()
		var now time.Duration
		for i := range uint32(5000) {
			now += time.Duration(rng.IntN(40)) * time.Microsecond
			src := topology.NodeID(rng.IntN(topo.NumHosts()))
			dst := topology.NodeID(rng.IntN(topo.NumHosts()))
			n.Inject(src, udp(topo.Node(src).Addr, topo.Node(dst).Addr, uint16(rng.IntN(50)), i, 40+rng.IntN(1400)), now)
			n.Advance(now, func(h topology.NodeID, b []byte) {
				binary.Write(trace, binary.BigEndian, h)
				trace.Write(b)
			})
		}
		for _, d := range drain(n) {
			fmt.Fprint(trace, d.at, d.host, d.packet)
		}
		fmt.Fprint(trace, n.ports, n.Stats())
		return fmt.Sprintf("%x", trace.Sum(nil))
	}
	a, b, c := run(1), run(1), run(2)
	if a != b {
		t.Errorf("two runs differ: %s, %s", a, b)
	}
	if a == c {
		t.Error("the seed makes no difference")
	}
}

// A host may answer from within the call that gives it a packet.
func TestAdvance_deliverMayInject(t *testing.T) {
	topo := fatTree(t, 4)
	n := network(t, topo, Config{})
	a, b := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	addr := map[topology.NodeID]topology.Node{a.ID: b, b.ID: a}
	n.Inject(a.ID, udp(a.Addr, b.Addr, 1, 0, 100), 0)
	var times []time.Duration
	for len(times) < 10 {
		at, ok := n.NextDeadline()
		if !ok {
			t.Fatalf("the network is empty after %d deliveries", len(times))
		}
		n.Advance(at, func(id topology.NodeID, packet []byte) {
			if payloadNumber(packet) != uint32(len(times)) {
				t.Fatalf("packet %d came as number %d", payloadNumber(packet), len(times))
			}
			times = append(times, at)
			peer := addr[id]
			n.Inject(id, udp(topo.Node(id).Addr, peer.Addr, 1, uint32(len(times)), 100), at)
		})
	}
	for i, at := range times {
		if want := times[0] * time.Duration(i+1); at != want {
			t.Errorf("delivery %d at %v, want %v", i, at, want)
		}
	}
}

func TestSetTopology_routesAroundWhatIsDown(t *testing.T) {
	topo := fatTree(t, 4)
	n := network(t, topo, Config{QueueBytes: 1 << 20})
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	edge, agg := host(t, topo, "e0.0"), host(t, topo, "a0.2")
	var dead topology.LinkID
	for _, p := range topo.Ports(edge.ID) {
		if p.Peer == agg.ID {
			dead = p.Link
		}
	}
	flows := func() uint64 { // many, so that both uplinks are used
		before, _ := n.Link(dead)
		for port := range uint16(64) {
			n.Inject(src.ID, udp(src.Addr, dst.Addr, port, 0, 100), 0)
		}
		if got := len(drain(n)); got != 64 {
			t.Errorf("%d of 64 delivered", got)
		}
		after, _ := n.Link(dead)
		return after.Packets - before.Packets
	}
	if got := flows(); got == 0 || got == 64 {
		t.Errorf("%d of 64 flows over one of two uplinks", got)
	}
	if err := n.SetTopology(topo.Without(dead)); err != nil {
		t.Fatal(err)
	}
	if got := flows(); got != 0 {
		t.Errorf("%d flows over a link that is down", got)
	}
	if err := n.SetTopology(topo); err != nil {
		t.Fatal(err)
	}
	if got := flows(); got == 0 || got == 64 {
		t.Errorf("after the repair, %d of 64 flows over one of two uplinks", got)
	}
	if err := n.SetTopology(fatTree(t, 6)); err == nil {
		t.Error("another fabric: no error")
	}
}

func TestAdvance_allocatesNothing(t *testing.T) {
	topo := fatTree(t, 4)
	n := network(t, topo, Config{})
	src, dst := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3")
	plain := udp(src.Addr, dst.Addr, 1, 0, 1400)
	sprayed := tunnel(t, src.Addr, topo.Paths(src.ID, dst.ID).Addr(0), plain)
	var now time.Duration
	allocs := testing.AllocsPerRun(100, func() {
		n.Inject(src.ID, plain, now)
		n.Inject(src.ID, sprayed, now)
		now += time.Millisecond
		n.Advance(now, func(topology.NodeID, []byte) {})
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
	if n.Stats().Delivered == 0 {
		t.Error("nothing was delivered")
	}
}

func BenchmarkAdvance(b *testing.B) {
	topo := fatTree(b, 4)
	n := network(b, topo, Config{RateBits: 1e9})
	var sent [][]byte
	for src := range topology.NodeID(16) {
		dst := (src + 8) % 16
		plain := udp(topo.Node(src).Addr, topo.Node(dst).Addr, 1, 0, 1400)
		paths := topo.Paths(src, dst)
		sent = append(sent, tunnel(b, topo.Node(src).Addr, paths.Addr(int(src)%len(paths.Live)), plain))
	}
	var now time.Duration
	for b.Loop() {
		for src, p := range sent {
			n.Inject(topology.NodeID(src), p, now)
		}
		now += 12 * time.Microsecond
		n.Advance(now, func(topology.NodeID, []byte) {})
	}
	hops := float64(b.N) * 16 * 6
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/hops, "ns/hop")
}
