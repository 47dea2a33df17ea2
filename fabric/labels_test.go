package fabric

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/encap"
	"weft/internal/golden"
	"weft/internal/kernel/kerneltest"
	"weft/internal/mplstest"
	"weft/topology"
)

func labelPlan(t testing.TB, top *topology.Topology, id topology.NodeID, opts Options) NodePlan {
	t.Helper()
	p, err := Plan(top, id, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlan_labelsGolden(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	for file, c := range map[string]struct {
		node string
		opts Options
	}{
		"srv6-host": {"h0.0.2", Options{SRv6: true}},
		"srv6-edge": {"e1.0", Options{SRv6: true}},
		"srv6-agg":  {"a2.2", Options{SRv6: true}},
		"mpls-edge": {"e1.0", Options{MPLS: true}},
		"mpls-agg":  {"a2.2", Options{MPLS: true}},
	} {
		p := labelPlan(t, top, kerneltest.Node(t, top, c.node).ID, c.opts)
		b, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, file+".json", string(b)+"\n")
		golden.Check(t, file+".sh", strings.Join(p.Commands(), "\n")+"\n")
	}
}

// What the switches' plans make of a path's labels is that path: the oracle is
// PathSet.Path, which knows no labels.
func TestPlan_labelsLeadByThePath(t *testing.T) {
	for _, spec := range kerneltest.LabelFabrics {
		top := kerneltest.Topology(t, spec)
		plans := make([]NodePlan, top.NumNodes())
		for n := range top.Nodes() {
			plans[n.ID] = labelPlan(t, top, n.ID, Options{SRv6: true, MPLS: true})
		}
		kerneltest.EachPath(t, top, func(src, dst topology.Node, s topology.PathSet, n int) {
			hops := s.Path(n).Hops
			addr, err := encap.SIDs(s.Labels(n))
			if err != nil {
				t.Fatal(err)
			}
			if got := walkSIDs(t, top, plans, src, addr); !slices.Equal(got, hops[:len(hops)-1]) {
				t.Errorf("%s: %s to %s by path %d: %s leads %v, want %v", spec, src.Name, dst.Name, n, addr, got, hops)
			}
			stack, err := mplstest.Append(nil, s.Labels(n), 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := walkMPLS(t, top, plans, src, stack); !slices.Equal(got, hops[:len(hops)-1]) {
				t.Errorf("%s: %s to %s by path %d: labels %x lead %v, want %v", spec, src.Name, dst.Name, n, stack, got, hops)
			}
		})
	}
}

// peerBehind returns the node at the other end of a port.
func peerBehind(t *testing.T, top *topology.Topology, p NodePlan, port string) topology.NodeID {
	t.Helper()
	i := slices.IndexFunc(p.Ports, func(q Port) bool { return q.Name == port })
	if i < 0 {
		t.Fatalf("%s has no port %s", p.Node, port)
	}
	return kerneltest.Node(t, top, p.Ports[i].Peer).ID
}

// walkSIDs follows the plans' routes from a host to who decapsulates.
func walkSIDs(t *testing.T, top *topology.Topology, plans []NodePlan, src topology.Node, addr netip.Addr) []topology.NodeID {
	t.Helper()
	at := src.ID
	way := []topology.NodeID{at}
	for at = peerBehind(t, top, plans[at], plans[at].Routes6[0].Via[0].Port); ; {
		way = append(way, at)
		p := plans[at]
		i := slices.IndexFunc(p.SIDs, func(s SID) bool { return s.Prefix.Contains(addr) })
		if i < 0 {
			t.Fatalf("%s has no route to %s", p.Node, addr)
		}
		s := p.SIDs[i]
		if s.Action == ActionEndDX4 {
			return way
		}
		// The next hop must be reached by the label's port.
		via := slices.IndexFunc(p.Routes6, func(r Route) bool { return r.Prefix == netip.PrefixFrom(s.NextHop, 128) })
		if via < 0 || p.Routes6[via].Via[0].Port != s.Port {
			t.Fatalf("%s: %+v: its next hop is not behind that port", p.Node, s)
		}
		at = peerBehind(t, top, p, s.Port)
		if want := topology.Addr6(top.Node(at).Addr); s.NextHop != want {
			t.Fatalf("%s: next hop of %+v is not the neighbour's %s", p.Node, s, want)
		}
		b := addr.As16()
		if sid, ok := encap.PopSID(&b); !ok || sid != s.SID {
			t.Fatalf("%s: popped %d, want %d", addr, sid, s.SID)
		}
		addr = netip.AddrFrom16(b)
	}
}

// walkMPLS follows the plans' routes from a host to who gets the plain packet.
func walkMPLS(t *testing.T, top *topology.Topology, plans []NodePlan, src topology.Node, stack []byte) []topology.NodeID {
	t.Helper()
	at := peerBehind(t, top, plans[src.ID], "p0")
	way := []topology.NodeID{src.ID, at}
	for len(stack) > 0 {
		label, rest, _, err := mplstest.Pop(stack)
		if err != nil {
			t.Fatal(err)
		}
		p := plans[at]
		i := slices.IndexFunc(p.MPLS, func(r MPLSRoute) bool { return r.Label == int(label) })
		if i < 0 {
			t.Fatalf("%s has no route of label %d", p.Node, label)
		}
		at = peerBehind(t, top, p, p.MPLS[i].Hop.Port)
		if p.MPLS[i].Hop.Addr != top.Node(at).Addr || p.mplsLabels() <= int(label) {
			t.Fatalf("%s: %+v, of %d labels, does not lead to %s", p.Node, p.MPLS[i], p.mplsLabels(), top.Node(at).Addr)
		}
		way = append(way, at)
		stack = rest
	}
	return way
}

// No label leads to a host, and none over a link that is down; nothing needs a
// port that only others have.
func TestPlan_labelsOfLivePortsOnly(t *testing.T) {
	whole := kerneltest.Topology(t, "fat-tree:k=4")
	for n := range whole.Nodes() {
		for _, down := range whole.Ports(n.ID) {
			p := labelPlan(t, whole.Without(down.Link), n.ID, Options{SRv6: true, MPLS: true})
			dead := p.Ports[down.Index].Name
			for _, s := range p.SIDs {
				if s.Port == dead {
					t.Errorf("%s: %+v over a link that is down", p.Node, s)
				}
			}
			for _, r := range p.Routes6 {
				if len(r.Via) > 0 && r.Via[0].Port == dead {
					t.Errorf("%s: %+v over a link that is down", p.Node, r)
				}
			}
			for _, r := range p.MPLS {
				if r.Hop.Port == dead {
					t.Errorf("%s: %+v over a link that is down", p.Node, r)
				}
			}
		}
		p := labelPlan(t, whole, n.ID, Options{SRv6: true})
		hosts := 0
		for _, port := range whole.Ports(n.ID) {
			name := p.Ports[port.Index].Name
			labels := slices.ContainsFunc(p.SIDs, func(s SID) bool { return s.Action == ActionEndX && s.Port == name })
			host := n.Layer != topology.LayerHost && whole.Node(port.Peer).Layer == topology.LayerHost
			if want := n.Layer != topology.LayerHost && !host; labels != want {
				t.Errorf("%s: a label leads to %s: %v", p.Node, p.Ports[port.Index].Peer, labels)
			}
			if host {
				hosts++
			}
		}
		if len(p.Gate) != hosts {
			t.Errorf("%s: %d ports are watched, want %d", p.Node, len(p.Gate), hosts)
		}
	}
}

// A switch with more ports than there are labels is refused by its name.
func TestPlan_tooManyPorts(t *testing.T) {
	top := kerneltest.Topology(t, "leaf-spine:leaves=230,spines=2,hosts=1")
	if _, err := Plan(top, 0, Options{SRv6: true}); err == nil || !strings.Contains(err.Error(), "230 ports") {
		t.Errorf("error %v", err)
	}
	if _, err := Plan(top, 0, Options{MPLS: true}); err != nil {
		t.Errorf("MPLS has labels enough: %v", err)
	}
}
