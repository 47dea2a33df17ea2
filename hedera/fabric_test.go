package hedera

import (
	"os"
	"testing"

	"weft/flowcell"
	"weft/topology"
	"weft/topology/graph"
)

func nodeID(h int) topology.NodeID { return topology.NodeID(h) }

var kinds = []string{
	"fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000",
	"fat-tree:k=6,hosts=5,host-rate=10,fabric-rate=40,core-rate=100",
	"leaf-spine:leaves=4,spines=3,hosts=5,host-rate=10,fabric-rate=10",
	"vl2:d0=2,d1=4,d2=4,host-rate=10,fabric-rate=10,core-rate=10",
	"leaf-spine:leaves=2,spines=4,hosts=2",
}

func fabricOf(t testing.TB, spec string) *Clos {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewClos(top)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fabrics returns one of each kind, also graphs: with unequal racks, bundles, two uplinks.
func fabrics(t testing.TB) map[string]Fabric {
	t.Helper()
	all := make(map[string]Fabric)
	for _, k := range kinds {
		all[k] = fabricOf(t, k)
	}
	text, err := os.ReadFile("testdata/uneven.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	all["uneven.yaml"] = NewData(g, nil)
	return all
}

// A route has the links of the topology's own path, each in its direction.
func TestClos_routesAreTheTopologysPaths(t *testing.T) {
	for _, k := range kinds {
		f := fabricOf(t, k)
		for src := range topology.NodeID(f.Hosts()) {
			for dst := range topology.NodeID(f.Hosts()) {
				s := f.t.Paths(src, dst)
				if s.Direct() {
					if r := f.AppendRoute(nil, src, dst, 0); len(r) > 0 || f.Live(src, dst, 0) {
						t.Fatalf("%s: %d to %d in a rack: %v", k, src, dst, r)
					}
					continue
				}
				for n := range f.Paths(src, dst) {
					p := s.Path(n)
					var want []Use
					for i, l := range p.Links[1 : len(p.Links)-1] {
						port := 2 * int32(l)
						if f.t.Link(l).A != p.Hops[i+1] {
							port++
						}
						want = append(want, Use{port, Whole})
					}
					got := f.AppendRoute(nil, src, dst, n)
					if len(got) != len(want) {
						t.Fatalf("%s: %d to %d by %d: %v, want %v", k, src, dst, n, got, want)
					}
					for i := range got {
						if got[i] != want[i] {
							t.Fatalf("%s: %d to %d by %d: %v, want %v", k, src, dst, n, got, want)
						}
					}
				}
			}
		}
	}
}

// What a path uses of a graph: all that goes in at the source's edge switch comes out at the
// destination's, at each switch on the way.
func TestData_routesLoseNothing(t *testing.T) {
	d := fabrics(t)["uneven.yaml"].(*Data)
	several := false
	for src := range topology.NodeID(d.Hosts()) {
		for dst := range topology.NodeID(d.Hosts()) {
			p := d.paths(src, dst)
			for n, path := range p.List {
				if !d.Live(src, dst, n) {
					t.Fatalf("%d to %d: path %d is dead", src, dst, n)
				}
				balance := make(map[graph.NodeID]int32)
				uses := d.AppendRoute(nil, src, dst, n)
				for _, u := range uses {
					low, high := d.g.Ends(graph.LinkID(u.Port / 2))
					from, to := low, high
					if u.Port%2 == 1 {
						from, to = high, low
					}
					balance[from] -= u.Share
					balance[to] += u.Share
				}
				up, down := p.Ways(n)
				several = several || up > 1 || down > 1
				in := int32(0)
				for node, b := range balance {
					ends := d.g.Edges(graph.NodeID(dst))
					switch {
					case node == path.Edge():
						if b < -Whole || b > -Whole+8 {
							t.Errorf("%d to %d by %d: the source's edge switch sends %d", src, dst, n, b)
						}
					case len(ends) > 0 && (node == ends[0] || node == ends[len(ends)-1]):
						in += b
					case b < -8 || b > 8:
						t.Errorf("%d to %d by %d: switch %s is left with %d", src, dst, n, d.g.Node(node).Name, b)
					}
				}
				if in < Whole-16 || in > Whole {
					t.Errorf("%d to %d by %d: %d arrives of %d", src, dst, n, in, Whole)
				}
			}
		}
	}
	if !several {
		t.Error("no path with several ways: the test shows nothing of them")
	}
}

// Behind the edge switch, a plain host's flow has a choice at each switch of the way up but the
// last: these are told, and no others, and none if the host itself has reported it.
func TestClos_relays(t *testing.T) {
	for spec, want := range map[string]int{"fat-tree:k=4": 1, "leaf-spine:leaves=2,spines=2,hosts=2": 0} {
		top, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClos(top)
		if err != nil {
			t.Fatal(err)
		}
		src, dst := topology.NodeID(0), topology.NodeID(top.NumHosts()-1)
		tuple := flowcell.FiveTuple{Proto: flowcell.ProtoTCP, Src: flowcell.AddressFrom(top.Node(src).Addr), Dst: flowcell.AddressFrom(top.Node(dst).Addr)}
		for path := range c.Paths(src, dst) {
			list := c.Relays(Assignment{Node: top.Node(top.EdgeOf(src)).Addr, Tuple: tuple, Path: path})
			hops := top.Paths(src, dst).Path(path).Hops
			if len(list) != want || want == 1 && list[0] != top.Node(hops[2]).Addr {
				t.Errorf("%s, path %d by %v: told are %v", spec, path, hops, list)
			}
			for _, a := range list {
				if !c.Known(a) || c.Owns(a, src) {
					t.Errorf("%s: %v is not known, or owns flows", spec, a)
				}
			}
			if list := c.Relays(Assignment{Node: top.Node(src).Addr, Tuple: tuple, Path: path}); len(list) > 0 {
				t.Errorf("%s: told are %v of what a host encapsulates", spec, list)
			}
		}
		top2 := top.Node(top.Paths(src, dst).Path(0).Hops[len(top.Paths(src, dst).Path(0).Hops)/2])
		if c.Known(top2.Addr) {
			t.Errorf("%s: %s at the top is known", spec, top2.Name)
		}
	}
}
