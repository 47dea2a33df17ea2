package topoupdate

import (
	"fmt"
	"slices"
	"testing"

	"weft/topology"
)

// specs are the fabrics that properties are tested on, of every kind.
var specs = []string{
	"fat-tree:k=2", "fat-tree:k=4", "fat-tree:k=6",
	"leaf-spine:leaves=4,spines=3,hosts=2",
	"vl2:d0=2,d1=4,d2=4,hosts=2",
	"vl2:d0=3,d1=2,d2=6,hosts=1",
}

func mustParse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func mustLookup(t testing.TB, top *topology.Topology, name string) topology.NodeID {
	t.Helper()
	n, err := top.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// Every layer, every direction that something can come from, every layer that it
// can be about. "hosts" and "down" and "up" are all ports of that kind, "others"
// all but the one it came by.
func TestForward_layersAndDirections(t *testing.T) {
	for _, c := range []struct {
		spec, self, from, originator string
		want                         string
	}{
		// Rule 2: a ToR's uplink failure is for its own servers.
		{"fat-tree:k=4", "e0.0", "own", "e0.0", "hosts"},
		{"fat-tree:k=4", "e0.0", "up", "a0.2", "hosts"},
		{"fat-tree:k=4", "e0.0", "up", "c1.1", "hosts"},
		{"fat-tree:k=4", "e0.0", "up", "e0.1", ""},
		{"fat-tree:k=4", "e0.0", "up", "e0.0", ""},
		// Rule 1: servers only listen.
		{"fat-tree:k=4", "e0.0", "host", "a0.2", ""},
		{"fat-tree:k=4", "e0.0", "host", "c1.1", ""},
		{"fat-tree:k=4", "e0.0", "host", "e0.0", ""},
		// Thesis §3.1.8: to all in the pod, and to all the cores above.
		{"fat-tree:k=4", "a0.2", "own", "a0.2", "down up"},
		// Rule 3.
		{"fat-tree:k=4", "a0.2", "up", "c1.1", "down"},
		{"fat-tree:k=4", "a0.2", "up", "a1.2", "down"},
		{"fat-tree:k=4", "a0.2", "up", "e1.0", ""},
		{"fat-tree:k=4", "a0.2", "down", "a0.3", "others"},
		{"fat-tree:k=4", "a0.2", "down", "c1.2", "others"},
		{"fat-tree:k=4", "a0.2", "down", "e0.0", ""},
		// Cores mirror an aggregation switch's tag to all other pods.
		{"fat-tree:k=4", "c1.1", "own", "c1.1", "down"},
		{"fat-tree:k=4", "c1.1", "down", "a0.2", "others"},
		{"fat-tree:k=4", "c1.1", "down", "c1.2", "others"},
		{"fat-tree:k=4", "c1.1", "down", "e0.0", ""},
		// A spine of leaf-spine originates, and reflects like a core.
		{"leaf-spine:leaves=4,spines=3,hosts=2", "SPINE", "own", "SPINE", "down"},
		{"leaf-spine:leaves=4,spines=3,hosts=2", "SPINE", "down", "OTHERSPINE", "others"},
		{"leaf-spine:leaves=4,spines=3,hosts=2", "LEAF", "own", "LEAF", "hosts"},
		{"leaf-spine:leaves=4,spines=3,hosts=2", "LEAF", "up", "SPINE", "hosts"},
		// A physical spine of VL2 reflects from one virtual spine to all others:
		// it is one switch, with one entry and one database.
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "3.0", "own", "3.0", "down"},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "3.0", "down", "AGG", "others"},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "AGG", "own", "AGG", "down up"},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "AGG", "up", "3.0", "down"},
	} {
		top := mustParse(t, c.spec)
		self, originator := named(t, top, c.self), named(t, top, c.originator)
		ports := top.Ports(self)
		for _, from := range portsOf(top, ports, c.from) {
			var want []int
			for _, kind := range []string{"hosts", "down", "up", "others"} {
				if containsWord(c.want, kind) {
					want = append(want, portsOf(top, ports, kind)...)
				}
			}
			want = slices.DeleteFunc(want, func(p int) bool { return p == from })
			slices.Sort(want)
			if got := forward(nil, top, self, from, originator); !slices.Equal(got, want) {
				t.Errorf("%s: %s from %s (port %d), about %s: ports %v, want %v", c.spec, c.self, c.from, from, c.originator, got, want)
			}
		}
	}
}

// named finds switches that are called differently in different fabrics.
func named(t *testing.T, top *topology.Topology, name string) topology.NodeID {
	layer, skip := topology.LayerHost, 0
	switch name {
	case "LEAF":
		layer = topology.LayerEdge
	case "SPINE", "AGG":
		layer = topology.LayerAgg
	case "OTHERSPINE":
		layer, skip = topology.LayerAgg, 1
	default:
		return mustLookup(t, top, name)
	}
	for n := range top.Nodes() {
		if n.Layer == layer {
			if skip == 0 {
				return n.ID
			}
			skip--
		}
	}
	t.Fatalf("%s has no %s", top, name)
	return 0
}

func containsWord(s, word string) bool {
	var a, b string
	fmt.Sscan(s, &a, &b)
	return a == word || b == word
}

func portsOf(top *topology.Topology, ports []topology.Port, kind string) (list []int) {
	if kind == "own" {
		return []int{Own}
	}
	for _, p := range ports {
		d := directionOf(top, p)
		if kind == "others" || d == toHost && (kind == "host" || kind == "hosts") || d == toDown && kind == "down" || d == toUp && kind == "up" {
			list = append(list, p.Index)
		}
	}
	return list
}

// For every single failure of a link or a switch: every host that has a path
// over a dead link on which all before that link works, hears of that link.
func TestForward_whoeverCouldUseALinkHearsOfIt(t *testing.T) {
	for _, spec := range specs {
		top := mustParse(t, spec)
		checked := 0
		for l := range top.Links() {
			if int(l.A) >= top.NumHosts() {
				checked += checkHeard(t, top.Without(l.ID), nil)
			}
		}
		for n := range top.Nodes() {
			if int(n.ID) >= top.NumHosts() {
				checked += checkHeard(t, top.WithoutNode(n.ID), map[topology.NodeID]bool{n.ID: true})
			}
		}
		if checked == 0 {
			t.Errorf("%s: nothing was checked", spec)
		}
	}
}

// checkHeard floods every switch's entry in the cut fabric and compares who has
// heard with who must.
func checkHeard(t *testing.T, cut *topology.Topology, dead map[topology.NodeID]bool) (checked int) {
	t.Helper()
	heard := map[topology.LinkID]map[topology.NodeID]bool{}
	for _, id := range cut.Down() {
		heard[id] = map[topology.NodeID]bool{}
		l := cut.Link(id)
		for _, end := range []topology.NodeID{l.A, l.B} {
			if !dead[end] {
				flood(cut, end, Own, end, heard[id])
			}
		}
	}
	for host := range cut.Hosts() {
		for _, l := range blocking(cut, host.ID) {
			checked++
			if !heard[l][host.ID] {
				t.Errorf("%s: %s is down, %s has a path up to it and does not hear of it", cut, cut.LinkName(l), host.Name)
			}
		}
	}
	return checked
}

func flood(top *topology.Topology, at topology.NodeID, from int, originator topology.NodeID, heard map[topology.NodeID]bool) {
	if heard[at] {
		return
	}
	heard[at] = true
	if int(at) < top.NumHosts() {
		return
	}
	ports := top.Ports(at)
	for _, i := range forward(nil, top, at, from, originator) {
		if top.Live(ports[i].Link) {
			flood(top, ports[i].Peer, ports[i].PeerPort, originator, heard)
		}
	}
}

// blocking returns the dead links that a packet of a host's can meet: it goes up
// over live links, and may turn down anywhere.
func blocking(top *topology.Topology, host topology.NodeID) (links []topology.LinkID) {
	type state struct {
		node topology.NodeID
		down bool
	}
	seen := map[state]bool{}
	var walk func(s state)
	walk = func(s state) {
		if seen[s] {
			return
		}
		seen[s] = true
		for _, p := range top.Ports(s.node) {
			if s.down && p.Up || int(p.Peer) < top.NumHosts() {
				continue
			}
			if !top.Live(p.Link) {
				links = append(links, p.Link)
				continue
			}
			walk(state{p.Peer, !p.Up})
		}
	}
	edge := top.Ports(host)[0]
	if top.Live(edge.Link) {
		walk(state{edge.Peer, false})
	}
	slices.Sort(links)
	return slices.Compact(links)
}

// forward appends to ports those by which the switch self passes on an entry of
// originator's. from is the port on which it received the entry, or Own if the entry is
// its own. An entry never goes back to where it came from. self and originator are
// switches of t.
func forward(ports []int, t *topology.Topology, self topology.NodeID, from int, originator topology.NodeID) []int {
	all := t.Ports(self)
	in := toSelf
	if from != Own {
		in = directionOf(t, all[from])
	}
	layer, origin := t.Node(self).Layer, t.Node(originator).Layer
	for _, p := range all {
		if p.Index != from && forwards(layer, in, origin, directionOf(t, p)) {
			ports = append(ports, p.Index)
		}
	}
	return ports
}
