package graph

import (
	"fmt"
	"net/netip"
	"testing"
)

// fatTree is the k-ary fat-tree as data.
func fatTree(k int) (s Spec) {
	h := k / 2
	addr := func(tier, n int) []netip.Addr {
		return []netip.Addr{netip.AddrFrom4([4]byte{172, byte(16 + tier), byte(n >> 8), byte(n)})}
	}
	node := func(n Node) string { s.Nodes = append(s.Nodes, n); return n.Name }
	wire := func(a, b string) { s.Links = append(s.Links, Link{Ends: [2]string{a, b}, Rate: 100000}) }
	var cores []string
	for i := range h * h {
		cores = append(cores, node(Node{Name: fmt.Sprintf("core%d", i), Tier: 3, Addresses: addr(3, i)}))
	}
	for pod := range k {
		var aggs []string
		for a := range h {
			aggs = append(aggs, node(Node{Name: fmt.Sprintf("agg%d-%d", pod, a), Tier: 2, Addresses: addr(2, pod*h+a)}))
			for c := range h {
				wire(aggs[a], cores[a*h+c])
			}
		}
		for e := range h {
			rack := pod*h + e
			edge := node(Node{Name: fmt.Sprintf("leaf%d-%d", pod, e), Tier: 1, Addresses: addr(1, rack),
				Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rack >> 8), byte(rack), 0}), 26)}})
			for _, a := range aggs {
				wire(edge, a)
			}
			for i := range h {
				host := node(Node{Name: fmt.Sprintf("h%d-%d-%d", pod, e, i), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(rack >> 8), byte(rack), byte(2 + i)})}})
				wire(host, edge)
			}
		}
	}
	return s
}

// The fat-tree of DRB §3.1.2: 3.0, 3.1, ... in the order of the digits.
func TestPaths_fatTree(t *testing.T) {
	g, err := New(fatTree(4))
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) NodeID { id, _ := g.ByName(name); return id }
	var got []string
	for _, p := range g.Paths(at("h0-0-0"), at("h3-1-1")).List {
		got = append(got, fmt.Sprint(g.Node(p.Bounce).Name, p.Digits))
	}
	if want := "[core0[0 0] core1[0 1] core2[1 0] core3[1 1]]"; fmt.Sprint(got) != want {
		t.Errorf("between pods %v, want %s", got, want)
	}
	got = nil
	for _, p := range g.Paths(at("h0-0-0"), at("h0-1-1")).List {
		got = append(got, fmt.Sprint(g.Node(p.Bounce).Name, p.Digits))
	}
	if want := "[agg0-0[0] agg0-1[1]]"; fmt.Sprint(got) != want {
		t.Errorf("within a pod %v, want %s", got, want)
	}
}

func BenchmarkNew_k48(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(fatTree(48)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPaths_k48(b *testing.B) {
	g, err := New(fatTree(48))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p := g.Paths(0, NodeID(g.NumHosts()-1))
		if len(p.List) != 576 {
			b.Fatal(len(p.List))
		}
	}
}

func BenchmarkLive_k48(b *testing.B) {
	g, err := New(fatTree(48))
	if err != nil {
		b.Fatal(err)
	}
	p := g.Paths(0, NodeID(g.NumHosts()-1))
	b.ReportAllocs()
	for b.Loop() {
		if live, _ := p.Live(nil); len(live) != 576 {
			b.Fatal(len(live))
		}
	}
}
