package fabric

import (
	"fmt"

	"weft/encap"
	"weft/internal/kernel"
	"weft/topology"
)

// MPLSRoute pops a label and sends the rest of the packet out of a port. So the switch
// behind the last label gets plain IP and routes it like any other packet.
type MPLSRoute struct {
	Label int `json:"label"`
	Hop   Hop `json:"hop"`
}

// planMPLS adds to a switch's plan a route per port: to a host there is none,
// since no path goes on behind one.
func (p *NodePlan) planMPLS(t *topology.Topology, n topology.Node) {
	if n.Layer == topology.LayerHost {
		return
	}
	for i, port := range t.Ports(n.ID) {
		if t.Live(port.Link) && t.Node(port.Peer).Layer != topology.LayerHost {
			p.MPLS = append(p.MPLS, MPLSRoute{int(encap.MPLSLabel(port.Index)), Hop{Addr: p.Ports[i].PeerAddr, Port: p.Ports[i].Name}})
		}
	}
}

// mplsSysctls are settings that there are only where the kernel has MPLS.
func (p NodePlan) mplsSysctls() []Sysctl {
	if len(p.MPLS) == 0 {
		return nil
	}
	s := []Sysctl{{Key: "net.mpls.platform_labels", Value: fmt.Sprint(p.mplsLabels())}}
	for _, port := range p.Ports {
		s = append(s, Sysctl{Key: "net.mpls.conf." + port.Name + ".input", Value: "1"})
	}
	return s
}

// mplsLabels is one more than the highest label, which is how the kernel wants
// it.
func (p NodePlan) mplsLabels() int {
	most := int(encap.MPLSLabel(0))
	for _, r := range p.MPLS {
		most = max(most, r.Label+1)
	}
	return most
}

func (r MPLSRoute) command() string {
	return fmt.Sprintf("ip -f mpls route replace %d via inet %s dev %s proto %d", r.Label, r.Hop.Addr, r.Hop.Port, kernel.RouteProtocol)
}
