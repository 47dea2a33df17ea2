package fluid

import (
	"slices"
	"strings"
	"testing"

	"weft/topology"
)

func nodeID(h int) topology.NodeID { return topology.NodeID(h) }

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func fabricOf(t testing.TB, spec string) *Fabric {
	t.Helper()
	f, err := NewFabric(parse(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var kinds = []string{
	"fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000",
	"fat-tree:k=6,hosts=5,host-rate=10,fabric-rate=40,core-rate=100",
	"leaf-spine:leaves=4,spines=3,hosts=5,host-rate=10,fabric-rate=40",
	"vl2:d0=2,d1=4,d2=4,host-rate=10,fabric-rate=40,core-rate=100",
}

// The ports of a route are those of the topology's own path.
func TestRoute_isTheTopologysPath(t *testing.T) {
	for _, spec := range kinds {
		top, f := parse(t, spec), fabricOf(t, spec)
		for a := range top.NumHosts() {
			for b := range top.NumHosts() {
				set := top.Paths(nodeID(a), nodeID(b))
				if set.Direct() {
					if r := f.Route(nodeID(a), nodeID(b), Direct); a != b && !slices.Equal(r.list(), []int32{int32(2 * a), int32(2*b + 1)}) {
						t.Fatalf("%s: %d to %d: %v", spec, a, b, r.list())
					}
					continue
				}
				if got := f.Paths(nodeID(a), nodeID(b)); got != len(set.Live) {
					t.Fatalf("%s: %d to %d: %d paths, want %d", spec, a, b, got, len(set.Live))
				}
				for _, n := range set.Live {
					var want []int32
					p := set.Path(n)
					for i, l := range p.Links {
						port := int32(2 * l)
						if top.Link(l).A != p.Hops[i] {
							port++
						}
						want = append(want, port)
					}
					if r := f.Route(nodeID(a), nodeID(b), n); !slices.Equal(r.list(), want) {
						t.Fatalf("%s: %d to %d by %d: ports %v, want %v", spec, a, b, n, r.list(), want)
					}
				}
			}
		}
	}
}

func TestNewFabric_needsRates(t *testing.T) {
	_, err := NewFabric(parse(t, "fat-tree:k=4"))
	if err == nil || !strings.Contains(err.Error(), "host-rate") {
		t.Errorf("without rates: %v; want an error that names host-rate", err)
	}
}

func TestNewFabric_deadLinksCarryNothing(t *testing.T) {
	top := parse(t, kinds[0])
	dead := topology.LinkID(20)
	f, err := NewFabric(top.Without(dead))
	if err != nil {
		t.Fatal(err)
	}
	for p, c := range f.Capacity() {
		if want := 1000.0; (p/2 == int(dead)) != (c == 0) || c != 0 && c != want {
			t.Errorf("port %d has %v", p, c)
		}
	}
}

// One flow spread over all of its paths loads every bundle as the paths together.
func TestNewSpread_bundlesCarryWhatTheirPortsDo(t *testing.T) {
	for _, spec := range kinds {
		top, f := parse(t, spec), fabricOf(t, spec)
		s, err := NewSpread(top)
		if err != nil {
			t.Fatal(err)
		}
		last := nodeID(top.NumHosts() - 1)
		for _, dst := range []topology.NodeID{1, nodeID(top.NumHosts() / 2), last} {
			r := s.Route(0, dst, 0)
			n := f.Paths(0, dst)
			for i, p := range r.list() {
				distinct := make(map[int32]bool)
				sum := 0.0
				for path := range n {
					each := f.Route(0, dst, path)
					if q := each.list()[i]; !distinct[q] {
						distinct[q] = true
						sum += f.Capacity()[q]
					}
				}
				if got := s.Capacity()[p]; got != sum && len(r.list()) != 4 {
					t.Errorf("%s: to %d, hop %d: %v, want %v", spec, dst, i, got, sum)
				}
			}
		}
	}
	if _, err := NewSpread(parse(t, kinds[0]).Without(17)); err == nil {
		t.Error("a dead link: no error")
	}
	if _, err := NewSpread(parse(t, kinds[0]+",e0.0-a0.3=500")); err == nil {
		t.Error("an uneven link: no error")
	}
}
