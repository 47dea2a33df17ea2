package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// DRB §2.1: of d0=2, d1=2, d2=4, Fig. 1(b).
func TestVL2_counts(t *testing.T) {
	for _, c := range []struct{ d0, d1, d2 int }{{2, 2, 4}, {2, 4, 4}, {3, 6, 9}, {2, 144, 144}} {
		top := mustParse(t, fmt.Sprintf("vl2:d0=%d,d1=%d,d2=%d", c.d0, c.d1, c.d2))
		for what, got := range map[string][2]int{
			"spines":               {top.numCores(), c.d1 / 2},
			"aggregation switches": {top.numAggs(), c.d2},
			"edge switches":        {top.numEdges(), c.d1 * c.d2 / 2 / c.d0},
			"hosts":                {top.NumHosts(), 5 * c.d1 * c.d2},
			"ports of a spine":     {len(top.Ports(NodeID(top.NumNodes() - 1))), c.d2},
			"ports of an agg":      {len(top.Ports(NodeID(top.NumHosts() + top.numEdges()))), c.d1},
			"uplinks of a rack":    {len(top.Ports(NodeID(top.NumHosts()))) - 10*c.d0, c.d0},
		} {
			if got[0] != got[1] {
				t.Errorf("%v: %d %s, want %d", top, got[0], what, got[1])
			}
		}
	}
}

// DRB §3.2, Fig. 5. The paper's spines are 3.0 and 3.1; split, the first is the
// virtual 3.0 and 3.2, the second 3.1 and 3.3. It draws d1=4: with d1=2 there
// would be one spine.
func TestVL2_virtualSpinesOfThePaper(t *testing.T) {
	top := mustParse(t, "vl2:d0=2,d1=4,d2=4")
	for virtual, physical := range map[string]string{"3.0": "c1.1", "3.2": "c1.1", "3.1": "c1.2", "3.3": "c1.2"} {
		if n, err := top.Lookup(virtual); err != nil || n.Name != physical {
			t.Errorf("%s is on %s, %v; want %s", virtual, n.Name, err, physical)
		}
	}
	for addr, physical := range map[string]string{
		"10.255.1.1": "c1.1", "10.255.2.1": "c1.1", "10.255.1.2": "c1.2", "10.255.2.2": "c1.2",
		"10.254.0.1": "a0.0", "10.254.3.1": "a0.3", "10.0.3.1": "e0.3", "10.0.3.21": "h0.3.21",
	} {
		if n, err := top.Lookup(addr); err != nil || n.Name != physical {
			t.Errorf("%s is %s, %v; want %s", addr, n.Name, err, physical)
		}
	}
	// The paths from server 0 to the last one: one for each virtual spine,
	// where the physical spines alone would leave four each.
	set := top.Paths(0, 79)
	for n, want := range []string{
		"h0.0.2 e0.0 a0.0 c1.1 a0.2 e0.3 h0.3.21",
		"h0.0.2 e0.0 a0.0 c1.2 a0.2 e0.3 h0.3.21",
		"h0.0.2 e0.0 a0.1 c1.1 a0.3 e0.3 h0.3.21",
		"h0.0.2 e0.0 a0.1 c1.2 a0.3 e0.3 h0.3.21",
	} {
		if got := names(top, set.Path(n).Hops); got != want || set.Name(n) != fmt.Sprint("3.", n) {
			t.Errorf("via %s: %s, want %s", set.Name(n), got, want)
		}
	}
	if len(set.Live) != 4 {
		t.Errorf("%d paths", len(set.Live))
	}
	if one := mustParse(t, "vl2:d0=2,d1=2,d2=4"); len(one.Paths(0, 79).Live) != 2 || one.numCores() != 1 {
		t.Errorf("d1=2: paths %v over %d spines", one.Paths(0, 79).Live, one.numCores())
	}
}

// The connection rule of DRB §3.2: aggregation switch i is in group i div d0;
// the uplink ports of a group are p_0, p_1, ... switch by switch; p_j is wired
// to port g of virtual spine j, which is part of physical spine j mod d1/2.
func TestVL2_connectionRule(t *testing.T) {
	for _, c := range []struct{ d0, d1, d2 int }{{2, 2, 4}, {2, 4, 4}, {3, 4, 9}, {1, 6, 3}, {4, 10, 8}} {
		top := mustParse(t, fmt.Sprintf("vl2:d0=%d,d1=%d,d2=%d,hosts=1", c.d0, c.d1, c.d2))
		groups := c.d2 / c.d0
		for i := range c.d2 {
			agg := mustLookup(t, top, fmt.Sprint("a0.", i))
			ports := top.Ports(agg)
			if racks := len(ports) - c.d1/2; racks != c.d1/2 {
				t.Fatalf("%v: %d racks below a0.%d", top, racks, i)
			}
			for up, port := range ports[c.d1/2:] {
				j := i%c.d0*(c.d1/2) + up
				spine, virtual := j%(c.d1/2), j/(c.d1/2)
				if want := fmt.Sprintf("c1.%d", spine+1); top.Node(port.Peer).Name != want || port.PeerPort != virtual*groups+i/c.d0 {
					t.Errorf("%v: uplink %d of a0.%d goes to port %d of %s, want %d of %s", top, up, i,
						port.PeerPort, top.Node(port.Peer).Name, virtual*groups+i/c.d0, want)
				}
			}
		}
	}
}

// What came to virtual spine v leaves by its ports, whatever other way there
// is; only what was not encapsulated may take any.
func TestRoutes_virtualSpinesKeepToTheirPorts(t *testing.T) {
	top := mustParse(t, "vl2:d0=2,d1=4,d2=4,hosts=2")
	spine := mustLookup(t, top, "3.1")
	byTable := map[int][]string{}
	for _, r := range top.Routes(spine) {
		byTable[r.Virtual] = append(byTable[r.Virtual], fmt.Sprint(r.Prefix, r.Ports))
	}
	for table, want := range map[int]string{
		0: "10.0.0.0/8 [] 10.0.0.0/24 [0 2] 10.0.1.0/24 [0 2] 10.0.2.0/24 [1 3] 10.0.3.0/24 [1 3]",
		1: "10.0.0.0/24 [0] 10.0.1.0/24 [0] 10.0.2.0/24 [1] 10.0.3.0/24 [1]",
		2: "10.0.0.0/24 [2] 10.0.1.0/24 [2] 10.0.2.0/24 [3] 10.0.3.0/24 [3]",
	} {
		if got := strings.Join(byTable[table], " "); got != want {
			t.Errorf("table %d: %s, want %s", table, got, want)
		}
	}
	// A dead link below: the virtual spine has no route, so that the main table
	// sends it round.
	l, err := top.LinkByName("a0.0-e0.1")
	if err != nil {
		t.Fatal(err)
	}
	f := tablesOf(top.Without(l.ID))
	r, _ := f.match(spine, top.Node(mustLookup(t, top, "h0.1.2")).Addr, 1)
	if !slices.Equal(r.Ports, []int{2}) || r.Virtual != 0 {
		t.Errorf("round a dead link: %+v", r)
	}
}

func TestLeafSpine_addresses(t *testing.T) {
	top := mustParse(t, "leaf-spine:leaves=600,spines=300,hosts=2")
	for name, addr := range map[string]string{
		"h0.0.2": "10.0.0.2", "e0.255": "10.0.255.1", "e1.0": "10.1.0.1", "h2.87.3": "10.2.87.3",
		"a0.0": "10.255.0.1", "a0.255": "10.255.255.1", "a1.0": "10.254.0.1", "a1.43": "10.254.43.1",
	} {
		if n, err := top.Lookup(name); err != nil || n.Addr.String() != addr {
			t.Errorf("%s is %v, %v; want %s", name, n.Addr, err, addr)
		}
	}
	if set := top.Paths(0, NodeID(top.NumHosts()-1)); len(set.Live) != 300 || len(set.Bases) != 1 {
		t.Errorf("%d paths in bases %v", len(set.Live), set.Bases)
	}
	for _, s := range []string{"h2.88.2", "e2.88", "a1.44", "c1.1", "3.0", "10.253.0.1", "a2.0"} {
		if n, err := top.Lookup(s); err == nil {
			t.Errorf("Lookup(%q) = %v", s, n)
		}
	}
}

func TestLinkByName_bothOrdersAndErrors(t *testing.T) {
	for _, top := range fabrics(t) {
		for l := range top.Links() {
			name := top.LinkName(l.ID)
			a, b, _ := strings.Cut(name, "-")
			for _, s := range []string{name, b + "-" + a, top.Node(l.A).Addr.String() + "-" + top.Node(l.B).Addr.String()} {
				if got, err := top.LinkByName(s); err != nil || got != l {
					t.Fatalf("%v: LinkByName(%q) = %+v, %v; want %+v", top, s, got, err, l)
				}
			}
		}
	}
	top := mustFatTree(t, 4)
	for s, says := range map[string]string{
		"":             "hyphen",
		"e0.0":         "hyphen",
		"e0.0-":        `node ""`,
		"-e0.0":        `node ""`,
		"e0.0-a1.2":    "not wired",
		"e0.0-e0.1":    "not wired",
		"e0.0-e0.0":    "not wired",
		"h0.0.2-e0.1":  "not wired",
		"h0.0.2-a0.2":  "not wired",
		"a0.2-3.2":     "not wired",
		"e0.0-3.0":     "not wired",
		"e0.0-a0.2-3.": `node "a0.2-3."`,
	} {
		if l, err := top.LinkByName(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("LinkByName(%q) = %+v, %v; want an error saying %q", s, l, err, says)
		}
	}
}
