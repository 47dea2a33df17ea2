package spray

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
	"weft/policy"
	"weft/topology"
)

func hostsOf(t testing.TB, name, spec string, seed uint64) *Hosts {
	return newHosts(t, HostsConfig{Topology: parse(t, spec), Policy: name, Seed: seed})
}

// send returns the paths of so many packets of 1,460 bytes, 10 µs apart from a time.
func send(h *Hosts, f *Flow, packets int, from time.Duration) (list []int) {
	for i := range packets {
		path, _ := h.Data(f, uint32(1460*i), 1460, 1500, from+time.Duration(i)*10*time.Microsecond)
		list = append(list, path)
	}
	return list
}

// cycles reports whether list goes round order, from wherever.
func cycles(list, order []int) bool {
	at := slices.Index(order, list[0])
	for i, p := range list {
		if at < 0 || p != order[(at+i)%len(order)] {
			return false
		}
	}
	return true
}

func TestData_goesRoundAsTheRuleHasIt(t *testing.T) {
	for name, rule := range map[string]drb.Rule{"drb": drb.DigitReversal, "rrb": drb.RoundRobin} {
		h := hostsOf(t, name, fatTree, 1)
		order := rule.Order([]int{2, 2}, []int{0, 1, 2, 3})
		var f Flow
		h.Open(&f, 0, 12, tuple(0, 12, 1))
		if got := send(h, &f, 12, 0); !cycles(got, order) {
			t.Errorf("%s: paths %v do not go round %v", name, got, order)
		}
		var acks []int
		for range 12 {
			acks = append(acks, h.Ack(&f, 0))
		}
		if !cycles(acks, order) {
			t.Errorf("%s: paths of acknowledgements %v do not go round %v", name, acks, order)
		}
	}
}

// Flows of one pair share a selector, be they data the one way; acknowledgements of
// what comes the other way have their own.
func TestData_pairsShareASelector(t *testing.T) {
	h := hostsOf(t, "rrb", leafSpine, 1)
	var a, b, back Flow
	h.Open(&a, 0, 12, tuple(0, 12, 1))
	h.Open(&b, 0, 12, tuple(0, 12, 2))
	h.Open(&back, 12, 0, tuple(12, 0, 3))
	var data, acks []int
	for range 6 {
		data = append(data, send(h, &a, 1, 0)[0], send(h, &b, 1, 0)[0])
		acks = append(acks, h.Ack(&back, 0))
	}
	order := []int{0, 1, 2, 3}
	if !cycles(data, order) || !cycles(acks, order) {
		t.Errorf("data take %v, acknowledgements %v", data, acks)
	}
}

func TestData_prestoCutsFlowcells(t *testing.T) {
	h := hostsOf(t, "presto", leafSpine, 1)
	var f Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	const packets = 44 // of 1,460 bytes in 64 KB
	var cells []int
	first := uint16(0)
	for i := range 6 * packets {
		path, n := h.Data(&f, uint32(1460*i), 1460, 1500, 0)
		if i == 0 {
			first = n.Cell()
		}
		if want := flowcell.MakeNumber(first+uint16(i/packets), uint8(i%packets)); n != want {
			t.Fatalf("packet %d has number %v, want %v", i, n, want)
		}
		if i%packets == 0 {
			cells = append(cells, path)
		} else if path != cells[len(cells)-1] {
			t.Fatalf("packet %d leaves its flowcell", i)
		}
	}
	if !cycles(cells, []int{0, 1, 2, 3}) {
		t.Errorf("flowcells take %v", cells)
	}
}

// After a timeout what is sent again begins a unit.
func TestData_timeoutEndsFlowcell(t *testing.T) {
	h := hostsOf(t, "presto", leafSpine, 1)
	var f Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	_, a := h.Data(&f, 7, 1460, 1500, 0)
	_, b := h.Data(&f, 7, 1460, 1500, flowcell.LeastTimeout)
	_, c := h.Data(&f, 7, 1460, 1500, 2*flowcell.LeastTimeout+1)
	_, d := h.Data(&f, 1467, 1460, 1500, 9*flowcell.LeastTimeout)
	if b.Cell() != a.Cell() || c.Cell() == b.Cell() || d.Cell() != c.Cell() {
		t.Errorf("cells %d, soon again %d, after a timeout %d, later %d", a.Cell(), b.Cell(), c.Cell(), d.Cell())
	}
}

func TestData_letflowChoosesAfterPauses(t *testing.T) {
	h := hostsOf(t, "letflow", leafSpine, 1)
	var f Flow
	h.Open(&f, 0, 12, tuple(0, 12, 1))
	used := map[int]bool{}
	for i := range 40 {
		list := send(h, &f, 5, time.Duration(i)*10*ms)
		if slices.Max(list) != slices.Min(list) {
			t.Fatalf("a flowlet takes %v", list)
		}
		used[list[0]] = true
	}
	if len(used) != 4 {
		t.Errorf("40 flowlets take only %v", used)
	}
}

func TestData_ecmpIsByFlow(t *testing.T) {
	h := hostsOf(t, "ecmp", fatTree, 1)
	used := map[int]bool{}
	for n := range 64 {
		var f Flow
		h.Open(&f, 0, 12, tuple(0, 12, n))
		list := send(h, &f, 4, 0)
		ack := h.Ack(&f, 0)
		if slices.Max(list) != slices.Min(list) || h.Ack(&f, 0) != ack {
			t.Fatalf("a flow takes %v", list)
		}
		used[list[0]] = true
		h.Close(&f)
	}
	if len(used) != 4 {
		t.Errorf("64 flows take only %v", used)
	}
}

func TestData_withinARackIsDirect(t *testing.T) {
	for _, name := range policy.Names() {
		h := hostsOf(t, name, leafSpine, 1)
		var f Flow
		h.Open(&f, 0, 1, tuple(0, 1, 1))
		if path, n := h.Data(&f, 0, 1460, 1500, 0); path != -1 || n != 0 || h.Ack(&f, 0) != -1 {
			t.Errorf("%s: path %d, number %v", name, path, n)
		}
		if h.Marks() && (h.DataMark(&f, -1, 0) != Mark{} || h.AckMark(&f, 0) != Mark{}) {
			t.Errorf("%s: marks", name)
		}
		if h.Next() != Never {
			t.Errorf("%s: probes are due", name)
		}
	}
}

// Whatever the policy and whichever links fail, paths are live if any is; and the same
// seed makes the same choices.
func TestData_pathsAreLive(t *testing.T) {
	const seed = 11
	for _, spec := range []string{leafSpine, fatTree, vl2} {
		for _, name := range policy.Names() {
			for _, groups := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(seed, 0))
				topo := parse(t, spec)
				c := HostsConfig{Topology: topo, Policy: name, Options: policy.Options{Groups: groups}, Seed: seed}
				h, twin := newHosts(t, c), newHosts(t, c)
				type flow struct {
					f, twin  Flow
					src, dst topology.NodeID
				}
				var flows []flow
				for n := range 12 {
					src, dst := topology.NodeID(rng.IntN(topo.NumHosts())), topology.NodeID(rng.IntN(topo.NumHosts()))
					if src == dst {
						continue
					}
					flows = append(flows, flow{src: src, dst: dst})
					x := &flows[len(flows)-1]
					h.Open(&x.f, src, dst, tuple(src, dst, n))
					twin.Open(&x.twin, src, dst, tuple(src, dst, n))
				}
				for step := range 6 {
					down := someDown(topo, rng, step)
					h.SetTopology(down)
					twin.SetTopology(down)
					for i := range flows {
						x := &flows[i]
						set := down.PathsOrAll(x.src, x.dst)
						back := down.PathsOrAll(x.dst, x.src)
						for k := range 60 {
							now := time.Duration(step)*ms + time.Duration(k)*50*time.Microsecond
							p, n := h.Data(&x.f, uint32(1460*k), 1460, 1500, now)
							a := h.Ack(&x.f, 0)
							q, m := twin.Data(&x.twin, uint32(1460*k), 1460, 1500, now)
							if p != q || n != m || a != twin.Ack(&x.twin, 0) {
								t.Fatalf("%s, %s: not deterministic", spec, name)
							}
							if set.Direct() {
								continue
							}
							if !slices.Contains(set.Live, p) || !slices.Contains(back.Live, a) {
								t.Fatalf("seed %d: %s, %s: paths %d and %d, live are %v and %v", seed, spec, name, p, a, set.Live, back.Live)
							}
						}
					}
				}
			}
		}
	}
}

func TestSetTopology_ecmpFlowsComeBack(t *testing.T) {
	h := hostsOf(t, "ecmp", leafSpine, 1)
	topo := h.topo
	down := without(t, topo, "e0.0-a0.1")
	for n := range 64 {
		var f Flow
		h.SetTopology(topo)
		h.Open(&f, 0, 12, tuple(0, 12, n))
		before := send(h, &f, 1, 0)[0]
		h.SetTopology(down)
		during := send(h, &f, 1, 0)[0]
		h.SetTopology(topo)
		if after := send(h, &f, 1, 0)[0]; after != before || before != 1 && during != before || during == 1 {
			t.Errorf("flow %d takes %d, then %d, then %d", n, before, during, after)
		}
	}
}

func TestData_groupsKeepFlowsToAComponent(t *testing.T) {
	topo := without(t, parse(t, leafSpine), "e0.0-a0.0")
	h := newHosts(t, HostsConfig{Topology: topo, Policy: "rrb", Options: policy.Options{Groups: true}, Seed: 5})
	groups := topo.Groups(4, 8) // of other racks than the first (DRILL Fig. 4)
	if len(groups) != 2 {
		t.Fatalf("%v", groups)
	}
	total := groups[0].Weight + groups[1].Weight
	flows := make([]int, len(groups))
	const n = 2000
	for i := range n {
		var f Flow
		h.Open(&f, 4, 8, tuple(4, 8, i))
		list := send(h, &f, 8, 0)
		of := slices.IndexFunc(groups, func(g topology.Group) bool { return slices.Contains(g.Paths, list[0]) })
		for _, p := range list {
			if !slices.Contains(groups[of].Paths, p) {
				t.Fatalf("a flow takes %v across %v", list, groups)
			}
		}
		flows[of]++
		h.Close(&f)
	}
	for i, g := range groups {
		if want := n * g.Weight / total; flows[i] < want*8/10 || flows[i] > want*12/10 {
			t.Errorf("component %v has %d flows, want about %d", g, flows[i], want)
		}
	}
}
