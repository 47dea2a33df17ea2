package fabric

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/bench/sim/fluid"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

func twoLevelPlan(t testing.TB, top *topology.Topology, id topology.NodeID) NodePlan {
	t.Helper()
	p, err := Plan(top, id, Options{Routing: RoutingTwoLevel})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lookUp is the kernel's look-up of a packet that came in: by rules, then by longest prefix.
// It returns all hops of the route.
func lookUp(p NodePlan, dst netip.Addr) []Hop {
	tables := []int{0}
	id := int(dst.As4()[3] & hostIDMask)
	for _, g := range p.Suffixes {
		if slices.Contains(g.IDs, id) {
			tables = []int{firstLevelTable, g.Table, 0}
		}
	}
	for _, table := range tables {
		best := Route{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0)}
		found := false
		for _, r := range p.Routes {
			if r.Table == table && r.Prefix.Contains(dst) && (!found || r.Prefix.Bits() > best.Prefix.Bits()) {
				best, found = r, true
			}
		}
		if found {
			return best.Via
		}
	}
	return nil
}

// walk returns the switches that a packet from one host to another passes; nil if it does
// not arrive. It fails the test where a switch with two levels has several ways.
func walk(t *testing.T, top *topology.Topology, src topology.NodeID, dst netip.Addr) (way []topology.NodeID) {
	t.Helper()
	at := top.EdgeOf(src)
	for range 6 {
		way = append(way, at)
		p := twoLevelPlan(t, top, at)
		via := lookUp(p, dst)
		if len(via) == 0 {
			return nil
		}
		if len(via) > 1 {
			t.Fatalf("%s: %d ways from %s to %s", top, len(via), p.Node, dst)
		}
		i := slices.IndexFunc(p.Ports, func(port Port) bool { return port.Name == via[0].Port })
		next := top.Ports(at)[i]
		if !top.Live(next.Link) {
			return nil
		}
		if at = next.Peer; top.Node(at).Layer == topology.LayerHost {
			if id, ok := top.ByAddr(dst); !ok || id != at {
				t.Fatalf("%s: a packet to %s comes to %s", top, dst, top.Node(at).Name)
			}
			return way
		}
	}
	t.Fatalf("%s: a packet from %d to %s goes round", top, src, dst)
	return nil
}

// The thesis' example (§3.1.5): from 10.0.1.2 to 10.2.0.3 by 10.0.2.1, and to 10.2.0.2 by
// 10.0.3.1. And its Fig. 3.3, the table of 10.2.2.1.
func TestTwoLevel_theThesisExamples(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for dst, want := range map[string]string{"10.2.0.3": "10.0.2.1", "10.2.0.2": "10.0.3.1"} {
		p := twoLevelPlan(t, top, kerneltest.Node(t, top, "10.0.1.1").ID)
		if via := lookUp(p, netip.MustParseAddr(dst)); len(via) != 1 || via[0].Addr.String() != want {
			t.Errorf("10.0.1.1 sends to %s by %v, want %s", dst, via, want)
		}
	}
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "10.0.2.1").ID)
	if via := lookUp(p, netip.MustParseAddr("10.2.0.3")); len(via) != 1 || via[0].Port != "p3" {
		t.Errorf("10.0.2.1 sends to 10.2.0.3 by %v, want port 3", via)
	}
	p = twoLevelPlan(t, top, kerneltest.Node(t, top, "10.2.2.1").ID)
	for dst, want := range map[string]string{"10.2.1.2": "p1", "10.2.0.3": "p0", "10.3.0.3": "p3", "10.3.0.2": "p2"} {
		if via := lookUp(p, netip.MustParseAddr(dst)); len(via) != 1 || via[0].Port != want {
			t.Errorf("10.2.2.1 sends to %s by %v, want %s", dst, via, want)
		}
	}
}

// All pairs take the path that the model of the simulator has, to the embedded stack, too.
func TestTwoLevel_isTheModels(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4,core-rate=9", "fat-tree:k=6,core-rate=9", "fat-tree:k=4,hosts=5,core-rate=9", "leaf-spine:leaves=3,spines=4,hosts=4"} {
		spec += ",host-rate=9,fabric-rate=9"
		top := kerneltest.Topology(t, spec)
		model, err := fluid.NewFabric(top)
		if err != nil {
			t.Fatal(err)
		}
		for src := range top.Hosts() {
			if int(src.ID)%7 != 0 { // some of each rack's place
				continue
			}
			for dst := range top.Hosts() {
				if top.EdgeOf(src.ID) == top.EdgeOf(dst.ID) {
					continue
				}
				want := top.Paths(src.ID, dst.ID).Path(model.TwoLevel(fluid.Pair{Src: src.ID, Dst: dst.ID})).Hops
				want = want[1 : len(want)-1]
				for _, addr := range []netip.Addr{dst.Addr, top.EmbeddedAddr(dst.ID)} {
					if got := walk(t, top, src.ID, addr); !slices.Equal(got, want) {
						t.Fatalf("%s: %s to %s by %v, want %v", spec, src.Name, addr, got, want)
					}
				}
			}
		}
	}
}

// Tables of the second level are as many as ports up, k/2, and the host IDs fill them alike
// (thesis §3.1.5).
func TestTwoLevel_fewTables(t *testing.T) {
	for _, k := range []int{4, 6, 8} {
		top, err := topology.FatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		for n := range top.Nodes() {
			p := twoLevelPlan(t, top, n.ID)
			want := 0
			if n.Layer == topology.LayerEdge || n.Layer == topology.LayerAgg {
				want = k / 2
			}
			if len(p.Suffixes) != want {
				t.Fatalf("k=%d: %s has %d suffix tables, want %d", k, n.Name, len(p.Suffixes), want)
			}
			for _, g := range p.Suffixes {
				if len(g.IDs) != 1 {
					t.Errorf("k=%d: %s: table %d is of host IDs %v, want one", k, n.Name, g.Table, g.IDs)
				}
			}
		}
	}
}

// With a link down all packets still arrive, by ways that are live, and what used another
// way before keeps it (thesis §3.1.8).
func TestTwoLevel_goesAroundFailures(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6"} {
		whole := kerneltest.Topology(t, spec)
		for l := range whole.Links() {
			if whole.Node(l.A).Layer == topology.LayerHost || int(l.ID)%5 != 0 {
				continue
			}
			top := whole.Without(l.ID)
			for src := range top.Hosts() {
				if int(src.ID)%11 != 0 {
					continue
				}
				for dst := range top.Hosts() {
					before, after := walk(t, whole, src.ID, dst.Addr), walk(t, top, src.ID, dst.Addr)
					if after == nil {
						t.Fatalf("%s without %s: nothing from %s to %s", spec, whole.LinkName(l.ID), src.Name, dst.Name)
					}
					if i := slices.Index(before, l.A); !slices.Equal(before, after) && (i < 0 || !slices.Contains(before, l.B)) {
						t.Fatalf("%s without %s: %s to %s by %v, was %v, which is whole", spec, whole.LinkName(l.ID), src.Name, dst.Name, after, before)
					}
				}
			}
		}
	}
}

// What one dead port leaves goes to all the others, not to one of them.
func TestTwoLevel_sharesADeadPortsIDs(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=8")
	edge := kerneltest.Node(t, top, "e0.0").ID
	ports := top.Ports(edge)
	p := twoLevelPlan(t, top.Without(ports[4].Link, ports[5].Link), edge)
	by := make(map[string]int)
	for id := range 4 {
		via := lookUp(p, netip.AddrFrom4([4]byte{10, 7, 0, byte(id + firstHostID)}))
		if len(via) != 1 {
			t.Fatalf("host ID %d by %v", id+firstHostID, via)
		}
		by[via[0].Port]++
	}
	if by["p6"] != 2 || by["p7"] != 2 {
		t.Errorf("host IDs by port: %v, want two by p6 and p7 each", by)
	}
}

func TestTwoLevel_refuses(t *testing.T) {
	for spec, why := range map[string]string{
		"fat-tree:k=2":                         "one port up",
		"leaf-spine:leaves=4,spines=1,hosts=4": "one port up",
		"leaf-spine:leaves=4,spines=4,hosts=3": "give racks 4 hosts",
		"fat-tree:k=6,hosts=2":                 "give racks 3 hosts",
		"vl2:d0=2,d1=4,d2=4,hosts=4":           "choose a way down",
	} {
		_, err := Plan(kerneltest.Topology(t, spec), 0, Options{Routing: RoutingTwoLevel})
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "ecmp") {
			t.Errorf("%s: error %v, want one with %q and what to use instead", spec, err, why)
		}
	}
	if _, err := Plan(kerneltest.Topology(t, "fat-tree:k=4"), 0, Options{Routing: "three-level"}); err == nil || !strings.Contains(err.Error(), "must be ecmp or two-level") {
		t.Errorf("unknown routing: error %v", err)
	}
}

func TestTwoLevel_commands(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	text := strings.Join(twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID).Commands(), "\n")
	for _, want := range []string{
		"ip route replace default table 5601 via 10.0.2.1 dev p2 onlink proto 87",
		"ip route replace default table 5602 via 10.0.3.1 dev p3 onlink proto 87",
		"ip route replace 10.0.1.2/32 table 5600 via 10.0.1.2 dev p0 onlink proto 87",
		"ip rule add priority 5761 fwmark 0x400/0x400 lookup 5600 protocol 87",
		"ip rule add priority 5762 fwmark 0x400/0x7ff lookup 5601 protocol 87",
		"meta mark set @nh,153,7 map { 0 : 0x401, 1 : 0x400, 2 : 0x401, 3 : 0x400, ",
		", 127 : 0x400 }",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
