package dataplane

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

// to is the pair of a host's embedded stack.
func (e *Egress) to(fabric *topology.Topology, host topology.NodeID) *pair {
	return e.paths.to(flowcell.AddressFrom(fabric.EmbeddedAddr(host)))
}

// What a table that has seen changes knows must be what one knows that begins
// with the last of them.
func TestPathTable_afterChangesEqualsANewOne(t *testing.T) {
	const seed = 21
	rng := rand.New(rand.NewPCG(seed, 0))
	fabric, _ := topology.FatTree(6)
	e := testEgress(t, fabric, "drb")
	now := fabric
	for step := range 600 {
		var flips []topology.LinkID
		for range 1 + rng.IntN(4) {
			flips = append(flips, topology.LinkID(rng.IntN(fabric.NumLinks())))
		}
		if step%50 == 49 { // more than the log holds
			for range 2 * maxChanges {
				flips = append(flips, topology.LinkID(rng.IntN(fabric.NumLinks())))
			}
		}
		down := map[topology.LinkID]bool{}
		for l := range topology.LinkID(fabric.NumLinks()) {
			down[l] = !now.Live(l)
		}
		for _, l := range flips {
			down[l] = !down[l] && rng.IntN(3) > 0
		}
		now = fabric
		for l := range topology.LinkID(fabric.NumLinks()) {
			if down[l] {
				now = now.Without(l)
			}
		}
		e.SetTopology(now)
		for range rng.IntN(12) { // others find out later
			dst := topology.NodeID(rng.IntN(fabric.NumHosts()))
			p, set := e.to(fabric, dst), now.PathsOrAll(e.paths.self, dst)
			if p.direct != set.Direct() {
				t.Fatalf("seed %d, step %d: host %d: direct is %v", seed, step, dst, p.direct)
			}
			if p.direct {
				continue
			}
			var live []int
			for i, o := range p.group.out {
				if o != nil {
					live = append(live, i)
					if o.index != i || o.bounce != set.Addr(i) {
						t.Fatalf("seed %d, step %d: path %d is %+v", seed, step, i, o)
					}
				}
			}
			if !slices.Equal(live, set.Live) || !slices.Equal(p.group.Live, set.Live) {
				t.Fatalf("seed %d, step %d: host %d has paths %v, wanted are %v", seed, step, dst, live, set.Live)
			}
			for range 2 * len(set.Live) {
				if o := p.next(&p.data); !p.group.has(o) {
					t.Fatalf("seed %d, step %d: host %d: next is %+v", seed, step, dst, o)
				}
			}
		}
		checkGroups(t, e.paths)
	}
	if len(e.paths.groups.byKey) < 3 {
		t.Errorf("only %d groups: the test tests nothing", len(e.paths.groups.byKey))
	}
}

// checkGroups counts by hand what the table counts as it goes.
func checkGroups(t testing.TB, paths *pathTable) {
	t.Helper()
	pairs, size := map[*group]int{}, 0
	for _, p := range paths.pairs {
		if p.group != nil {
			pairs[p.group]++
		}
	}
	for key, g := range paths.groups.byKey {
		if g.key != key || g.pairs != pairs[g] || g.pairs == 0 {
			t.Fatalf("a group has %d pairs, says %d", pairs[g], g.pairs)
		}
		size += len(g.Weighted)
		delete(pairs, g)
	}
	if len(pairs) > 0 || size != paths.groups.paths {
		t.Fatalf("%d groups in use are not in the table; it has %d paths, says %d", len(pairs), size, paths.groups.paths)
	}
}

func TestPathTable_forgetsGroupsAboveTheBound(t *testing.T) {
	e := testEgress(t, fatTree, "drb")
	e.to(fatTree, 15)
	e.paths.groups.paths = maxGrouped - 3 // as if there were many
	far := e.to(fatTree, 3)               // of the own pod, two paths: fits
	if s, _ := e.Stats(); s.GroupsReset != 0 || far.group == nil {
		t.Fatalf("%+v", s)
	}
	e.SetTopology(fatTree.WithoutNode(node(t, fatTree, "3.1")))
	if p := e.to(fatTree, 15); p.group == nil || len(p.group.Live) != 3 {
		t.Fatalf("%+v", p)
	}
	if s, _ := e.Stats(); s.GroupsReset != 1 {
		t.Fatalf("%+v", s)
	}
	for _, host := range []topology.NodeID{3, 15, 8} {
		if p := e.to(fatTree, host); p.group == nil || p.next(&p.data) == nil {
			t.Errorf("host %d has no paths", host)
		}
	}
}

func TestChangeLog_saysWhatItHasForgotten(t *testing.T) {
	const seed = 4
	rng := rand.New(rand.NewPCG(seed, 0))
	var log changeLog
	var all [][]topology.LinkID // by number
	all = append(all, nil)
	for range 200 {
		links := make([]topology.LinkID, 1+rng.IntN(maxChanges/3))
		if rng.IntN(20) == 0 {
			links = make([]topology.LinkID, maxChanges-1+rng.IntN(4))
		}
		for i := range links {
			links[i] = topology.LinkID(rng.IntN(1000))
		}
		log.add(links, nil)
		all = append(all, links)
		if len(log.list) > maxChanges || log.latest != uint64(len(all)-1) {
			t.Fatalf("seed %d: %d are remembered, latest is %d of %d", seed, len(log.list), log.latest, len(all)-1)
		}
		kept := 0
		for since := range all {
			var want []topology.LinkID
			for _, l := range all[since+1:] {
				want = append(want, l...)
			}
			got, ok := log.since(uint64(since))
			if !ok {
				if since == len(all)-1 || since == len(all)-2 && len(links) <= maxChanges {
					t.Fatalf("seed %d: does not know what has changed since %d of %d", seed, since, log.latest)
				}
				continue
			}
			kept++
			var list []topology.LinkID
			for _, c := range got {
				list = append(list, c.link)
			}
			if !slices.Equal(list, want) {
				t.Fatalf("seed %d: since %d of %d: %v, wanted is %v", seed, since, log.latest, list, want)
			}
		}
	}
}

// Of paths with weights each has its share, in any policy.
func TestPathTable_weightsAreShares(t *testing.T) {
	fabric, err := topology.Parse("fat-tree:k=4,fabric-rate=40,core-rate=40,a0.2-c1.1=10")
	if err != nil {
		t.Fatal(err)
	}
	set := fabric.Paths(0, 15)
	if !slices.Equal(set.Weights, []int{1, 4, 4, 4}) {
		t.Fatalf("weights are %v: the test tests nothing", set.Weights)
	}
	for _, name := range policy.Names() {
		e := testEgress(t, fabric, name)
		p := e.to(fabric, 15)
		used := [4]int{}
		const n = 13 * 400
		for i := range n {
			o := p.next(&p.data)
			if name == "ecmp" {
				flow := flowcell.FiveTuple{SrcPort: uint16(i)}
				by, _ := p.group.ByHash(flow.Hash(1))
				o = p.group.out[by]
			}
			used[o.index]++
		}
		slack := 0
		if r := e.paths.policy.Rule.String(); r == "hash" || r == "random" {
			slack = 150
		}
		for i, got := range used {
			if want := set.Weights[i] * n / 13; got < want-slack || got > want+slack {
				t.Errorf("%s: path %d is taken %d times, wanted are %d", name, i, got, want)
			}
		}
	}
}

// With components, a flow's packets keep to one, flows are spread over them by
// weight, and within one the rule goes on as ever.
func TestPathTable_componentsKeepFlowsTogether(t *testing.T) {
	fabric, _ := topology.FatTree(4)
	// Pod 1 does not reach core 3.0, so less comes to pod 3 by it than by others.
	cut := fabric.Without(between(t, fabric, "a1.2", "c1.1"))
	for _, name := range []string{"drb", "presto", "letflow"} {
		e := testEgress(t, fabric, name, func(c *Config) { c.PolicyOptions.Groups = true })
		if p := e.to(fabric, 15); p.further != nil {
			t.Fatalf("%s: %d components of a whole fabric", name, len(p.further)+1)
		}
		e.SetTopology(cut)
		groups := cut.Groups(0, 15)
		p := e.to(fabric, 15)
		if len(groups) < 2 || len(p.further) != len(groups)-1 {
			t.Fatalf("%s: %d components, wanted are %+v", name, len(p.further)+1, groups)
		}
		of, total := map[int]int{}, 0
		for i, g := range groups {
			total += g.Weight
			for _, n := range g.Paths {
				of[n] = i
			}
		}
		flows := make([]int, len(groups))
		const n = 3000
		for port := range uint16(n) {
			used := map[int]bool{}
			for i := range 12 {
				w := wrapOne(t, e, dataPacket(port, 1448), time.Duration(i)*time.Millisecond)
				used[of[slices.Index(cores, w.bounce)]] = true
			}
			if len(used) != 1 {
				t.Fatalf("%s: flow %d takes paths of %d components", name, port, len(used))
			}
			for i := range used {
				flows[i]++
			}
		}
		for i, g := range groups {
			if want := n * g.Weight / total; flows[i] < want*9/10 || flows[i] > want*11/10 {
				t.Errorf("%s: of %d flows %v keep to the components %+v", name, n, flows, groups)
			}
		}
		e.SetTopology(fabric)
		if p := e.to(fabric, 15); p.further != nil {
			t.Errorf("%s: components of a fabric that is whole again", name)
		}
	}
}

// What is avoided to one host has the pairs with that host take other paths from their
// next packet on; others, of its rack even, go on where they are.
func TestPathTable_avoidsPathsToOneHostAlone(t *testing.T) {
	e := testEgress(t, fatTree, "drb")
	to := func(host topology.NodeID, top *topology.Topology) []int {
		if top != nil {
			e.SetTopology(top)
		}
		return slices.Clone(e.paths.to(flowcell.AddressFrom(fatTree.EmbeddedAddr(host))).group.Live)
	}
	all := []int{0, 1, 2, 3}
	mate := e.paths.to(flowcell.AddressFrom(fatTree.EmbeddedAddr(14)))
	was := mate.group
	next := fatTree.Avoiding(topology.Avoided{Dst: fatTree.Node(15).Addr, Path: 0}, topology.Avoided{Dst: fatTree.Node(15).Addr, Path: 2})
	if before, after := to(15, nil), to(15, next); !slices.Equal(before, all) || !slices.Equal(after, []int{1, 3}) {
		t.Errorf("paths to the host were %v, and are %v", before, after)
	}
	if p := e.paths.to(mate.dst); p.group != was {
		t.Errorf("paths to its neighbour are %v", p.group.Live)
	}
	if after := to(15, fatTree); !slices.Equal(after, all) {
		t.Errorf("paths to the host are %v when nothing is avoided any more", after)
	}
}

// Whatever the seed, acknowledgements do not take the paths that data takes, in step
// with it: nor do the paths of a pair begin again at the same place when they change.
func TestPathTable_selectorsAreNotInStep(t *testing.T) {
	for _, seed := range []uint64{1, 2, 1 << 63, 1<<63 + 7, math.MaxUint64} {
		e := testEgress(t, fatTree, "rb", func(c *Config) { c.Seed = seed })
		p := e.to(fatTree, 15)
		draw := func(s *drb.Selector) (drawn [64]int) {
			for i := range drawn {
				drawn[i] = p.next(s).index
			}
			return drawn
		}
		data, ack := draw(&p.data), draw(&p.ack)
		e.paths.bind(p, p.group)
		if again := draw(&p.data); data == ack || data == again || ack == again {
			t.Errorf("seed %x: data takes %v, acknowledgements take %v, data later takes %v", seed, data, ack, again)
		}
	}
}
