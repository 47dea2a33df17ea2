package schedulerd

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
	"weft/hedera"
	"weft/topology"
)

// What etcd says of the next leader while this one's term ends is not lost.
func TestServer_remembersWhoIsNext(t *testing.T) {
	s, _ := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	own, next := s.status().Leader, "127.0.0.1:9"
	epoch := s.status().Epoch
	s.follow(own, epoch)
	if got := s.status(); !got.Leads || got.Leader != own {
		t.Fatalf("%+v", got)
	}
	s.follow(next, epoch+1)
	if got := s.status(); !got.Leads || got.Leader != own {
		t.Errorf("the term has not ended, and %s leads", got.Leader)
	}
	s.lead(nil, 0)
	if got := s.status(); got.Leads || got.Leader != next || got.Epoch != epoch+1 {
		t.Errorf("after the term %q leads since %d, want %s", got.Leader, got.Epoch, next)
	}
}

// After a term that nobody has followed yet nobody leads: this scheduler's own key does not say so.
func TestServer_doesNotFollowItself(t *testing.T) {
	s, _ := newTestServer(t, func(f hedera.Fabric) hedera.Fabric { return f })
	s.follow(s.status().Leader, s.status().Epoch)
	if s.lead(nil, 0); s.status().Leader != "" {
		t.Errorf("%q leads", s.status().Leader)
	}
}

// What has been written is not written again, and what changes meanwhile is.
func TestUnwritten_forgetsWhatIsWritten(t *testing.T) {
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	at := func(dst topology.NodeID) hedera.Assignment { return hedera.Assignment{Tuple: tupleOf(top, 0, dst)} }
	u := newUnwritten()
	u.add([]hedera.Assignment{at(8), at(9)}, []hedera.Assignment{at(10), at(11)})
	u.written([]hedera.Assignment{at(8)}, []hedera.Assignment{at(10)})
	if put, remove := u.lists(); !slices.Equal(put, []hedera.Assignment{at(9)}) || !slices.Equal(remove, []hedera.Assignment{at(11)}) {
		t.Errorf("to be written: %v, to be removed: %v", put, remove)
	}
}

// A node that a flow is placed at again is not told to withdraw it; the others are, also the switch
// above the edge switch by which the flow went before. What is withdrawn comes first: it makes room.
func TestByNode(t *testing.T) {
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := hedera.NewClos(top)
	if err != nil {
		t.Fatal(err)
	}
	host, edge, left, right := top.Node(0).Addr, top.Node(top.EdgeOf(0)).Addr, netip.MustParseAddr("10.0.2.1"), netip.MustParseAddr("10.0.3.1")
	at := func(node netip.Addr, dst topology.NodeID, path int) hedera.Assignment {
		return hedera.Assignment{Node: node, Tuple: tupleOf(top, 0, dst), Path: path, Via: top.Paths(0, dst).Addr(path)}
	}
	placed := []hedera.Assignment{at(host, 8, 0), at(edge, 9, 3)}
	ended := []hedera.Assignment{at(host, 8, 1), at(edge, 9, 0), at(host, 9, 0), at(edge, 10, 2)}
	type said struct {
		dst  topology.NodeID
		path int
		held bool
	}
	want := map[netip.Addr][]said{
		host:  {{9, 0, false}, {8, 0, true}},
		edge:  {{10, 2, false}, {9, 3, true}},
		left:  {{9, 0, false}},
		right: {{10, 2, false}, {9, 3, true}},
	}
	got := byNode(fabric, placed, ended, time.Second)
	for node, list := range got {
		var all []said
		for _, p := range list {
			dst, _ := top.ByAddr(p.Tuple.Dst.IP())
			all = append(all, said{dst, p.Path, p.For == time.Second})
		}
		if !slices.Equal(all, want[node]) {
			t.Errorf("%v is told %v, want %v", node, all, want[node])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d nodes are told, want %d", len(got), len(want))
	}
}

// Whatever flows come, move and end: after each round those nodes have a flow pinned by which it is placed,
// and no others.
func TestByNode_followsTheFlows(t *testing.T) {
	top, err := topology.Parse(testFabric)
	if err != nil {
		t.Fatal(err)
	}
	fabric, err := hedera.NewClos(top)
	if err != nil {
		t.Fatal(err)
	}
	loop, err := hedera.NewLoop(hedera.LoopConfig{Fabric: fabric, Rule: "annealing", Forget: 2 * time.Second,
		Annealing: hedera.AnnealingConfig{Iterations: 200, C: .5, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	type at struct {
		node  netip.Addr
		tuple flowcell.FiveTuple
	}
	pinned, moved := make(map[at]int), 0
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range time.Duration(100) {
		now := round * time.Second
		for src := range topology.NodeID(top.NumHosts()) {
			if rng.IntN(4) > 0 { // by an edge switch, behind which others are told, too
				_ = loop.Report(top.Node(top.EdgeOf(src)).Addr, tupleOf(top, src, topology.NodeID(rng.IntN(top.NumHosts()))), 1e8+rng.Uint64N(3e8), now)
			}
		}
		r := loop.Round(now)
		moved += len(r.Moved)
		for node, list := range byNode(fabric, r.Placed, append(r.Ended, r.Moved...), time.Minute) {
			for _, p := range list {
				if pinned[at{node, p.Tuple}] = p.Path; p.For == 0 {
					delete(pinned, at{node, p.Tuple})
				}
			}
		}
		want := make(map[at]int)
		for _, a := range r.Placed {
			for _, node := range append(fabric.Relays(a), a.Node) {
				want[at{node, a.Tuple}] = a.Path
			}
		}
		if !maps.Equal(pinned, want) {
			t.Fatalf("round %d: %d pins, want %d: %v, want %v", round, len(pinned), len(want), pinned, want)
		}
	}
	if moved == 0 {
		t.Error("no flow has moved to another aggregation switch")
	}
}
