package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func mustFatTree(t testing.TB, k int) *Topology {
	t.Helper()
	return mustParse(t, fmt.Sprintf("fat-tree:k=%d", k))
}

func mustLookup(t testing.TB, top *Topology, s string) NodeID {
	t.Helper()
	n, err := top.Lookup(s)
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// names joins the names of nodes.
func names(top *Topology, ids []NodeID) string {
	var s []string
	for _, id := range ids {
		s = append(s, top.Node(id).Name)
	}
	return strings.Join(s, " ")
}

// The 4-ary fat-tree of the thesis's Fig. 3.1 and of DRB's Fig. 1a.
func TestNode_fatTree4(t *testing.T) {
	top := mustFatTree(t, 4)
	for _, c := range []struct {
		name, addr, alias string
		layer             Layer
	}{
		{"h0.0.2", "10.0.0.2", "", LayerHost},
		{"h0.0.3", "10.0.0.3", "", LayerHost},
		{"h0.1.2", "10.0.1.2", "", LayerHost},
		{"h2.0.3", "10.2.0.3", "", LayerHost},
		{"h3.1.3", "10.3.1.3", "", LayerHost},
		{"e0.0", "10.0.0.1", "", LayerEdge},
		{"e3.1", "10.3.1.1", "", LayerEdge},
		{"a0.2", "10.0.2.1", "", LayerAgg},
		{"a0.3", "10.0.3.1", "", LayerAgg},
		{"a2.2", "10.2.2.1", "", LayerAgg},
		{"c1.1", "10.4.1.1", "3.0", LayerCore},
		{"c1.2", "10.4.1.2", "3.1", LayerCore},
		{"c2.1", "10.4.2.1", "3.2", LayerCore},
		{"c2.2", "10.4.2.2", "3.3", LayerCore},
	} {
		for _, s := range []string{c.name, c.addr, c.alias} {
			if s == "" {
				continue
			}
			n, err := top.Lookup(s)
			if err != nil || n.Name != c.name || n.Addr.String() != c.addr || n.Layer != c.layer {
				t.Errorf("Lookup(%q) = %+v, %v; want %s %s %v", s, n, err, c.name, c.addr, c.layer)
			}
		}
	}
	// DRB §3.1.2: 3.0 and 3.1 are above one aggregation switch, 3.2 and 3.3
	// above the other.
	for r := range 4 {
		for _, p := range top.Ports(mustLookup(t, top, fmt.Sprint("3.", r))) {
			pod := p.Index
			if got, want := top.Node(p.Peer).Name, fmt.Sprintf("a%d.%d", pod, 2+r/2); got != want {
				t.Errorf("3.%d is wired to %s in pod %d, want %s", r, got, pod, want)
			}
		}
	}
}

func TestFatTree_counts(t *testing.T) {
	for k := MinFatTreeK; k <= MaxFatTreeK; k += 2 {
		top := mustFatTree(t, k)
		if got, want := top.NumHosts(), k*k*k/4; got != want {
			t.Errorf("k=%d: %d hosts, want %d", k, got, want)
		}
		if got, want := top.NumNodes()-top.NumHosts(), 5*k*k/4; got != want {
			t.Errorf("k=%d: %d switches, want %d", k, got, want)
		}
		if got, want := top.NumLinks(), 3*k*k*k/4; got != want {
			t.Errorf("k=%d: %d links, want %d", k, got, want)
		}
	}
}

func TestNodes_yieldsEveryNodeOnceByLayer(t *testing.T) {
	for _, top := range append(fabrics(t), mustFatTree(t, 16)) {
		perLayer := map[Layer]int{}
		next, layer := NodeID(0), LayerHost
		for n := range top.Nodes() {
			if n.ID != next || n.Layer < layer {
				t.Fatalf("%v: node %d, layer %v after %v; want node %d", top, n.ID, n.Layer, layer, next)
			}
			next, layer = n.ID+1, n.Layer
			perLayer[n.Layer]++
		}
		want := map[Layer]int{LayerHost: top.numHosts(), LayerEdge: top.numEdges(), LayerAgg: top.numAggs(), LayerCore: top.numCores()}
		for l, n := range want {
			if perLayer[l] != n {
				t.Errorf("%v: %d of layer %v, want %d", top, perLayer[l], l, n)
			}
		}
		hosts := 0
		for h := range top.Hosts() {
			if h.Layer != LayerHost {
				t.Fatalf("%v: Hosts yields %s", top, h.Name)
			}
			hosts++
		}
		if hosts != top.NumHosts() {
			t.Errorf("%v: Hosts yields %d, want %d", top, hosts, top.NumHosts())
		}
		for range top.Nodes() {
			break // must not go on
		}
	}
}

func TestLookup_roundTripOfEveryNode(t *testing.T) {
	for _, top := range slices.Concat(fabrics(t), manyFabrics(t), []*Topology{mustFatTree(t, 16)}) {
		owner := map[netip.Addr]NodeID{}
		own := func(a netip.Addr, id NodeID) {
			if was, ok := owner[a]; ok {
				t.Fatalf("%v: nodes %d and %d have address %v", top, was, id, a)
			}
			owner[a] = id
		}
		seen := map[string]bool{}
		for n := range top.Nodes() {
			own(n.Addr, n.ID)
			for _, s := range []string{n.Name, n.Addr.String()} {
				if got, err := top.Lookup(s); err != nil || got != n {
					t.Fatalf("%v: Lookup(%q) = %+v, %v; want %+v", top, s, got, err, n)
				}
			}
			if seen[n.Name] {
				t.Fatalf("%v: two nodes named %s", top, n.Name)
			}
			seen[n.Name] = true
			if n.Layer == LayerHost {
				a := top.EmbeddedAddr(n.ID)
				own(a, n.ID)
				if got, err := top.Lookup(a.String()); err != nil || got != n {
					t.Fatalf("%v: Lookup(%q) = %+v, %v; want %+v", top, a, got, err, n)
				}
				if b := a.As4(); b[3] != n.Addr.As4()[3]+128 {
					t.Fatalf("%v: embedded address %v of %v", top, a, n.Addr)
				}
			}
			checkBounces(t, top, n, own)
		}
		checkStrangers(t, top, owner)
	}
}

// checkBounces looks at a switch's bouncing addresses, of which the first is
// its own, and at DRB's numbers of cores.
func checkBounces(t *testing.T, top *Topology, n Node, own func(netip.Addr, NodeID)) {
	t.Helper()
	bounces := top.BouncingAddrs(n.ID)
	if (len(bounces) > 0) != (n.Layer >= LayerAgg) || len(bounces) > 0 && bounces[0] != n.Addr {
		t.Fatalf("%v: %s bounces at %v", top, n.Name, bounces)
	}
	r, ok := top.CoreNumber(n.ID)
	if ok != (n.Layer == LayerCore) {
		t.Fatalf("%v: CoreNumber(%s) = %d, %v", top, n.Name, r, ok)
	}
	for v, a := range bounces {
		if v > 0 {
			own(a, n.ID)
		}
		got, err := top.Lookup(a.String())
		if err != nil || got != n {
			t.Fatalf("%v: Lookup(%q) = %+v, %v; want %s", top, a, got, err, n.Name)
		}
		if n.Layer != LayerCore {
			continue
		}
		// DRB §3.2: virtual spine v of physical spine i is number i + v·d1/2.
		s := fmt.Sprint("3.", r+v*top.cores)
		if got, err := top.Lookup(s); err != nil || got != n {
			t.Fatalf("%v: Lookup(%s) = %+v, %v; want %s", top, s, got, err, n.Name)
		}
	}
}

// checkStrangers looks at every other address around those in use.
func checkStrangers(t *testing.T, top *Topology, owner map[netip.Addr]NodeID) {
	t.Helper()
	seconds := map[byte]bool{0: true, 255: true}
	thirds := map[byte]bool{0: true, 255: true}
	for a := range owner {
		for d := range byte(3) {
			seconds[a.As4()[1]+d-1] = true
			thirds[a.As4()[2]+d-1] = true
		}
	}
	for b := range seconds {
		for c := range thirds {
			for _, d := range []int{0, 1, 2, 3, 4, 7, 126, 127, 128, 129, 130, 131, 132, 133, 254, 255} {
				a := octets(10, int(b), int(c), d)
				want, known := owner[a]
				if got, ok := top.ByAddr(a); ok != known || got != want && known {
					t.Fatalf("%v: ByAddr(%v) = %d, %v; want %d, %v", top, a, got, ok, want, known)
				}
			}
		}
	}
}

func TestLookup_largestK(t *testing.T) {
	top := mustFatTree(t, MaxFatTreeK)
	for n := range top.Nodes() {
		if id, ok := top.ByAddr(n.Addr); !ok || id != n.ID {
			t.Fatalf("ByAddr(%v) of %s = %d, %v", n.Addr, n.Name, id, ok)
		}
	}
}

func TestLookup_errors(t *testing.T) {
	top := mustFatTree(t, 4)
	for _, s := range []string{
		"", "h", "x0.0", "h0.0", "h0.0.1", "h0.0.4", "h0.0.130", "h0.2.2", "h4.0.2", "h00.0.2", "h0.0.2.1",
		"h+0.0.2", "h-1.0.2", "e0.2", "e4.0", "e0", "a0.1", "a0.4", "c0.1", "c3.1", "c1.0", "c1.3", "c4.1.1",
		"3.4", "3.-1", "3.", "3.x", "3.0.0", "10.0.0", "H0.0.2",
	} {
		n, err := top.Lookup(s)
		if err == nil {
			t.Errorf("Lookup(%q) = %s", s, n.Name)
			continue
		}
		for _, part := range []string{fmt.Sprintf("%q", s), "fat-tree:k=4", "h0.0.2 to h3.1.3", "e0.0 to e3.1", "a0.2 to a3.3", "c1.1 to c2.2", "3.0 to 3.3"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Lookup(%q): %v; does not say %q", s, err, part)
			}
		}
	}
	for _, s := range []string{"10.0.0.0", "10.0.0.4", "10.0.0.129", "10.0.0.132", "10.4.1.3", "10.4.0.1", "10.5.0.2", "10.0.2.2", "10.0.4.1", "11.0.0.2", "::1", "::ffff:10.0.0.4"} {
		if n, err := top.Lookup(s); err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("Lookup(%q) = %s, %v; want an error naming it", s, n.Name, err)
		}
	}
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{"h0.0.2", "3.3", "3.+1", "e0.1", "a2.2", "c1.2", "10.0.0.130", "::1", "h999.0.2"} {
		f.Add(s)
	}
	top := mustFatTree(f, 4)
	f.Fuzz(func(t *testing.T, s string) {
		n, err := top.Lookup(s)
		if err != nil {
			return
		}
		a, isAddr := netip.ParseAddr(s)
		switch {
		case isAddr == nil && a == n.Addr, isAddr == nil && n.Layer == LayerHost && a == top.EmbeddedAddr(n.ID):
		case s == n.Name:
		default:
			if r, ok := top.CoreNumber(n.ID); !ok || s != fmt.Sprint("3.", r) {
				t.Fatalf("Lookup(%q) = %+v", s, n)
			}
		}
	})
}
