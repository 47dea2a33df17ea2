package topology

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// everyNumber calls f for every pair of hosts in different racks and every
// number of a path, live or not.
func everyNumber(top *Topology, f func(src, dst NodeID, set PathSet, n int)) {
	for src := range NodeID(top.NumHosts()) {
		for dst := range NodeID(top.NumHosts()) {
			set := top.Paths(src, dst)
			for n := range set.Count() {
				f(src, dst, set, n)
			}
		}
	}
}

// follow goes out of a switch's ports, one label at a time.
func follow(top *Topology, edge NodeID, labels []int) (hops []NodeID, ok bool) {
	hops = []NodeID{edge}
	for _, label := range labels {
		ports := top.Ports(hops[len(hops)-1])
		if label < 0 || label >= len(ports) {
			return hops, false
		}
		hops = append(hops, ports[label].Peer)
	}
	return hops, true
}

func TestLabels_leadAlongThePath(t *testing.T) {
	for _, top := range fabrics(t) {
		everyNumber(top, func(src, dst NodeID, set PathSet, n int) {
			labels := set.Labels(n)
			hops, ok := follow(top, top.Ports(src)[0].Peer, labels)
			want := set.Path(n).Hops
			if want = want[1 : len(want)-1]; !ok || !slices.Equal(hops, want) {
				t.Fatalf("%v, %d to %d, path %d: labels %v lead by %s, want %s",
					top, src, dst, n, labels, names(top, hops), names(top, want))
			}
			if !slices.Contains(hops, set.Bounce(n)) {
				t.Fatalf("%v, %d to %d, path %d: %s does not pass %s", top, src, dst, n, names(top, hops), set.Name(n))
			}
		})
	}
}

// In VL2 the nodes do not tell the path: several links, one per virtual spine,
// join a group and a spine, and each has to be the path's own.
func TestLabels_takeTheLinksOfThePath(t *testing.T) {
	for _, top := range fabrics(t) {
		everyNumber(top, func(src, dst NodeID, set PathSet, n int) {
			path := set.Path(n)
			for i, label := range set.Labels(n) {
				if got, want := top.Ports(path.Hops[i+1])[label].Link, path.Links[i+1]; got != want {
					t.Fatalf("%v, %d to %d, path %d: label %d takes %s, want %s",
						top, src, dst, n, i, top.LinkName(got), top.LinkName(want))
				}
			}
		})
	}
}

func TestLabels_inTheLargest(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, top := range append(manyFabrics(t), mustFatTree(t, 64)) {
		for range 300 {
			src, dst := NodeID(rng.IntN(top.NumHosts())), NodeID(rng.IntN(top.NumHosts()))
			set := top.Paths(src, dst)
			if set.Direct() {
				continue
			}
			n := rng.IntN(set.Count())
			path := set.Path(n)
			hops, _ := follow(top, path.Hops[1], set.Labels(n))
			if !slices.Equal(hops, path.Hops[1:len(path.Hops)-1]) {
				t.Fatalf("seed %d: %v, %d to %d, path %d: %s", seed, top, src, dst, n, names(top, hops))
			}
			if got, ok := top.pathByLabels(src, dst, set.Labels(n)); !ok || got != n {
				t.Fatalf("seed %d: %v, %d to %d: path %d is found as %d, %v", seed, top, src, dst, n, got, ok)
			}
		}
	}
}

func TestLabels_withinARackNone(t *testing.T) {
	set := mustFatTree(t, 4).Paths(0, 1)
	if set.Count() != 0 || set.Labels(0) != nil || len(set.Choices(0)) > 0 {
		t.Errorf("%d paths, labels %v", set.Count(), set.Labels(0))
	}
}

func TestLabels_table(t *testing.T) {
	for _, c := range []struct {
		spec, from, to string
		n              int
		want           []int
	}{
		{"fat-tree:k=4", "h0.0.2", "h3.1.3", 1, []int{2, 3, 3, 1}}, // a0.2, c1.2
		{"fat-tree:k=4", "h0.1.2", "h0.0.2", 1, []int{3, 0}},       // a0.3
		{"leaf-spine:leaves=4,spines=3,hosts=2", "h0.0.2", "h0.3.2", 2, []int{4, 3}},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "h0.0.2", "h0.3.2", 3, []int{3, 3, 3, 1}}, // virtual spine 1 of the second spine
	} {
		top := mustParse(t, c.spec)
		src, dst := mustLookup(t, top, c.from), mustLookup(t, top, c.to)
		if got := top.Paths(src, dst).Labels(c.n); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s to %s, path %d: %v, want %v", c.spec, c.from, c.to, c.n, got, c.want)
		}
	}
}

// Who takes the labels off where Choices end can leave the rest to its routes: they
// lead along the path, over the path's own links, and nowhere else, also when links
// are down.
func TestChoices_routesDoTheRest(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, whole := range fabrics(t) {
		var down []LinkID
		for l := range whole.Links() {
			if rng.IntN(6) == 0 {
				down = append(down, l.ID)
			}
		}
		for _, top := range []*Topology{whole, whole.Without(down...)} {
			everyNumber(top, func(src, dst NodeID, set PathSet, n int) {
				choices, labels, path := set.Choices(n), set.Labels(n), set.Path(n)
				if len(choices) == 0 || len(choices) == len(labels) || !slices.Equal(choices, labels[:len(choices)]) {
					t.Fatalf("%v, %d to %d, path %d: choices %v of labels %v", top, src, dst, n, choices, labels)
				}
				for i := len(choices); i < len(labels); i++ {
					at := path.Hops[i+1]
					for _, port := range routedTo(top, at, dst) {
						if got := top.Ports(at)[port].Link; got != path.Links[i+1] {
							t.Fatalf("seed %d: %v, %d to %d, path %d: %s leads on by %s, want %s",
								seed, top, src, dst, n, top.Node(at).Name, top.LinkName(got), top.LinkName(path.Links[i+1]))
						}
					}
					if ports := routedTo(top, at, dst); len(ports) == 0 && top.Live(path.Links[i+1]) && slices.Contains(set.Live, n) {
						t.Fatalf("seed %d: %v, %d to %d, path %d: %s leads nowhere", seed, top, src, dst, n, top.Node(at).Name)
					}
				}
			})
		}
	}
}

// routedTo returns the ports by which a switch's main table leads to a host.
func routedTo(top *Topology, at, dst NodeID) (ports []int) {
	longest := -1
	for _, r := range top.Routes(at) {
		if r.Virtual == 0 && r.Prefix.Contains(top.Node(dst).Addr) && r.Prefix.Bits() > longest {
			ports, longest = r.Ports, r.Prefix.Bits()
		}
	}
	return ports
}

func TestChoices_table(t *testing.T) {
	for _, c := range []struct {
		spec, from, to string
		n              int
		want           []int
	}{
		{"fat-tree:k=4", "h0.0.2", "h3.1.3", 1, []int{2, 3}}, // c1.2, which knows only a3.2
		{"fat-tree:k=4", "h0.1.2", "h0.0.2", 1, []int{3}},    // a0.3
		{"leaf-spine:leaves=4,spines=3,hosts=2", "h0.0.2", "h0.3.2", 2, []int{4}},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "h0.0.2", "h0.3.2", 3, []int{3, 3, 3}}, // the second spine knows both aggregation switches
	} {
		top := mustParse(t, c.spec)
		src, dst := mustLookup(t, top, c.from), mustLookup(t, top, c.to)
		if got := top.Paths(src, dst).Choices(c.n); !slices.Equal(got, c.want) {
			t.Errorf("%s, %s to %s, path %d: %v, want %v", c.spec, c.from, c.to, c.n, got, c.want)
		}
	}
}

// Every short stack of labels names the path that has it, or none.
func TestPathByLabels_inverse(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=4,spines=3,hosts=2", "vl2:d0=2,d1=4,d2=4,hosts=2"} {
		top := mustParse(t, spec)
		for _, dst := range []NodeID{0, 1, NodeID(top.NumHosts() / 2), NodeID(top.NumHosts() - 1)} {
			known := map[string]int{}
			set := top.Paths(0, dst)
			for n := range set.Count() {
				known[key(set.Labels(n))] = n
			}
			if len(known) != set.Count() {
				t.Fatalf("%s: two of %d paths have the same labels", spec, set.Count())
			}
			everyStack(5, 7, func(labels []int) {
				want, exists := known[key(labels)]
				if n, ok := top.pathByLabels(0, dst, labels); ok != exists || n != want {
					t.Fatalf("%s, to %d: %v is path %d, %v; want %d, %v", spec, dst, labels, n, ok, want, exists)
				}
			})
		}
	}
}

func key(labels []int) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteByte(byte(l + 1))
	}
	return b.String()
}

// everyStack calls f for every stack of up to depth labels from -1 to below
// limit.
func everyStack(depth, limit int, f func(labels []int)) {
	var grow func(labels []int)
	grow = func(labels []int) {
		f(labels)
		if len(labels) == depth {
			return
		}
		for l := -1; l < limit; l++ {
			grow(append(labels, l))
		}
	}
	grow(make([]int, 0, depth))
}

// Dead links do not renumber paths.
func TestPathByLabels_whatIsDownKeepsItsNumber(t *testing.T) {
	top := mustFatTree(t, 4)
	set := top.Paths(0, 15)
	broken := top.Without(set.Path(2).Links[2])
	if n, ok := broken.pathByLabels(0, 15, set.Labels(2)); !ok || n != 2 {
		t.Errorf("path %d, %v", n, ok)
	}
	if slices.Contains(broken.Paths(0, 15).Live, 2) || broken.Paths(0, 15).Count() != 4 {
		t.Error("the path is live, or not counted")
	}
	for _, bad := range [][2]NodeID{{0, 16}, {20, 15}, {0, 0}} {
		if n, ok := top.pathByLabels(bad[0], bad[1], set.Labels(2)); ok {
			t.Errorf("%v: path %d", bad, n)
		}
	}
}

func TestCheckPorts(t *testing.T) {
	for _, c := range []struct {
		spec  string
		limit int
		names string // empty: no error
	}{
		{"fat-tree:k=4", 4, ""},
		{"fat-tree:k=4", 3, "e0.0"},
		{"leaf-spine:leaves=40,spines=3,hosts=2", 40, ""},
		{"leaf-spine:leaves=40,spines=3,hosts=2", 39, "a0.0"},
		{"vl2:d0=2,d1=4,d2=30,hosts=2", 30, ""},
		{"vl2:d0=2,d1=4,d2=30,hosts=2", 29, "c1.1"},
	} {
		top := mustParse(t, c.spec)
		most := 0
		for n := range top.Nodes() {
			most = max(most, len(top.Ports(n.ID)))
		}
		err := top.CheckPorts(c.limit)
		if (most > c.limit) != (err != nil) || (c.names == "") != (err == nil) {
			t.Errorf("%s, %d: %v; a switch has %d ports", c.spec, c.limit, err, most)
		}
		if err != nil && !(strings.Contains(err.Error(), c.names) && strings.Contains(err.Error(), "labels name only")) {
			t.Errorf("%s, %d: %v does not name %s", c.spec, c.limit, err, c.names)
		}
	}
}

func TestAddr6(t *testing.T) {
	a := netip.MustParseAddr
	for _, c := range [][3]string{
		{"10.0.0.2", "fd77:6566:7400::a00:2", "fe80::7765:6674:a00:2"},
		{"::ffff:10.255.1.130", "fd77:6566:7400::aff:182", "fe80::7765:6674:aff:182"},
	} {
		if got := Addr6(a(c[0])); got != a(c[1]) {
			t.Errorf("Addr6(%s) = %v, want %s", c[0], got, c[1])
		}
		if got := Addr4(a(c[1])); got != a(c[0]).Unmap() || Addr4(got) != got {
			t.Errorf("Addr4(%s) = %v, want %s", c[1], got, c[0])
		}
		if got := LinkLocal6(a(c[0])); got != a(c[2]) || !got.IsLinkLocalUnicast() {
			t.Errorf("LinkLocal6(%s) = %v, want %s", c[0], got, c[2])
		}
	}
	for _, bad := range []netip.Addr{{}, a("2001:db8::1")} {
		if Addr6(bad).IsValid() || LinkLocal6(bad).IsValid() {
			t.Errorf("%v has %v and %v", bad, Addr6(bad), LinkLocal6(bad))
		}
	}
	for _, bad := range []netip.Addr{{}, a("2001:db8::1"), a("::ffff:10.0.0.2"), a("fd77:6566:7400::1:a00:2"), a("fd77:6566:7400::a00:2%eth0")} {
		if got := Addr4(bad); got.IsValid() {
			t.Errorf("Addr4(%v) = %v", bad, got)
		}
	}
}

// pathByLabels is the inverse of Labels: the number of the path from one host to
// another, both Valid, that has these labels. It is false if none has them.
func (t *Topology) pathByLabels(src, dst NodeID, labels []int) (n int, ok bool) {
	a, b := t.position(src), t.position(dst)
	if a.layer != LayerHost || b.layer != LayerHost || len(labels) < 2 {
		return 0, false
	}
	s := t.Whole().Paths(src, dst)
	n = labels[0] - t.hosts
	if len(s.Bases) == 2 {
		n = n*t.cores + labels[1] - t.edges
	}
	if n < 0 || n >= s.Count() || !slices.Equal(s.Labels(n), labels) {
		return 0, false
	}
	return n, true
}
