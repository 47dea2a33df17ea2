package topology

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func mustFatTree(t testing.TB, k int) *Topology {
	t.Helper()
	top, err := FatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	return top
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
	for k := 2; k <= 16; k += 2 {
		top := mustFatTree(t, k)
		perLayer := map[Layer]int{}
		next, layer := NodeID(0), LayerHost
		for n := range top.Nodes() {
			if n.ID != next || n.Layer < layer {
				t.Fatalf("k=%d: node %d, layer %v after %v; want node %d", k, n.ID, n.Layer, layer, next)
			}
			next, layer = n.ID+1, n.Layer
			perLayer[n.Layer]++
		}
		want := map[Layer]int{LayerHost: k * k * k / 4, LayerEdge: k * k / 2, LayerAgg: k * k / 2, LayerCore: k * k / 4}
		for l, n := range want {
			if perLayer[l] != n {
				t.Errorf("k=%d: %d of layer %v, want %d", k, perLayer[l], l, n)
			}
		}
		hosts := 0
		for h := range top.Hosts() {
			if h.Layer != LayerHost {
				t.Fatalf("k=%d: Hosts yields %s", k, h.Name)
			}
			hosts++
		}
		if hosts != top.NumHosts() {
			t.Errorf("k=%d: Hosts yields %d, want %d", k, hosts, top.NumHosts())
		}
		for range top.Nodes() {
			break // must not go on
		}
	}
}

func TestLookup_roundTripOfEveryNode(t *testing.T) {
	for k := 2; k <= 16; k += 2 {
		top := mustFatTree(t, k)
		owner := map[netip.Addr]NodeID{}
		own := func(a netip.Addr, id NodeID) {
			if was, ok := owner[a]; ok {
				t.Fatalf("k=%d: nodes %d and %d have address %v", k, was, id, a)
			}
			owner[a] = id
		}
		seen := map[string]bool{}
		for n := range top.Nodes() {
			own(n.Addr, n.ID)
			for _, s := range []string{n.Name, n.Addr.String()} {
				if got, err := top.Lookup(s); err != nil || got != n {
					t.Fatalf("k=%d: Lookup(%q) = %+v, %v; want %+v", k, s, got, err, n)
				}
			}
			if seen[n.Name] {
				t.Fatalf("k=%d: two nodes named %s", k, n.Name)
			}
			seen[n.Name] = true
			if n.Layer == LayerHost {
				a := top.EmbeddedAddr(n.ID)
				own(a, n.ID)
				if got, err := top.Lookup(a.String()); err != nil || got != n {
					t.Fatalf("k=%d: Lookup(%q) = %+v, %v; want %+v", k, a, got, err, n)
				}
				if b := a.As4(); b[3] != n.Addr.As4()[3]+128 {
					t.Fatalf("k=%d: embedded address %v of %v", k, a, n.Addr)
				}
			}
			r, ok := top.CoreNumber(n.ID)
			if ok != (n.Layer == LayerCore) {
				t.Fatalf("k=%d: CoreNumber(%s) = %d, %v", k, n.Name, r, ok)
			}
			if ok {
				if got, err := top.Lookup(fmt.Sprint("3.", r)); err != nil || got != n {
					t.Fatalf("k=%d: Lookup(3.%d) = %+v, %v; want %s", k, r, got, err, n.Name)
				}
			}
		}
		// And every other address of the fabric's range is nobody's.
		for pod := 0; pod <= k+1; pod++ {
			for sw := 0; sw <= k+1; sw++ {
				for id := range 256 {
					a := octets(10, pod, sw, id)
					want, known := owner[a]
					if got, ok := top.ByAddr(a); ok != known || got != want {
						t.Fatalf("k=%d: ByAddr(%v) = %d, %v; want %d, %v", k, a, got, ok, want, known)
					}
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
