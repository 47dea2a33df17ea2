package interop

import (
	"fmt"
	"strings"

	"weft/fabric"
	"weft/topology"
)

// smallMTU is that of the links that are too small, in bytes.
const smallMTU = 1400

// shrink gives the links of a core a smaller MTU, at both ends.
func (n *network) shrink(core string) {
	n.Helper()
	top, node := n.lab.Config.Topology, n.node(core)
	for _, port := range n.ports(node.ID) {
		n.shell(core, fmt.Sprintf("ip link set %s mtu %d", port.Name, smallMTU))
		peer, _ := top.ByAddr(port.PeerAddr)
		for _, back := range n.ports(peer) {
			if back.PeerAddr == node.Addr {
				n.shell(top.Node(peer).Name, fmt.Sprintf("ip link set %s mtu %d", back.Name, smallMTU))
			}
		}
	}
}

func (n *network) ports(id topology.NodeID) []fabric.Port {
	n.Helper()
	plan, err := fabric.Plan(n.lab.Config.Topology, id, fabric.Options{})
	if err != nil {
		n.Fatal(err)
	}
	return plan.Ports
}

// pathMTU has switches in front of small links complain of outer headers, and the
// kernel hear how much there is room for without one. Probes would find it out, too.
func (n *network) pathMTU(config string) {
	config += "failures: {probes: false, updates: false}\n"
	a, b := n.weft(hostA, config), n.weft(hostB, config)
	n.shrink(cores[0])
	n.connect(hostA, hostB, n.addr(hostB)).exchange(20_000_000)
	for _, d := range []*daemon{a, b} {
		if d.count("dataplane.ingress.relayed") == 0 || d.count("dataplane.ingress.path_errors") != 0 {
			n.Errorf("%s: %v", d.node, d.status())
		}
		peer := map[string]string{hostA: hostB, hostB: hostA}[d.node]
		if got := n.must(d.node, "ip", "route", "get", n.addr(peer), "ipproto", "tcp"); !strings.Contains(got, fmt.Sprintf("mtu %d", smallMTU-20)) {
			n.Errorf("%s: the kernel has not learned that the MTU is %d: %s", d.node, smallMTU-20, got)
		}
	}
	// Now all paths are small, whichever a ping takes.
	for _, core := range cores {
		n.shrink(core)
	}
	for _, from := range []string{hostA, hostB} {
		n.shell(from, "ip route flush cache")
		to := map[string]string{hostA: hostB, hostB: hostA}[from]
		out, err := n.start(from, "ping", "-c", "1", "-W", "10", "-M", "do", "-s", "1452", n.addr(to)).wait()
		if want := fmt.Sprintf("mtu = %d", smallMTU-20); err == nil || !strings.Contains(out, want) {
			n.Errorf("ping -M do -s 1452 does not say %s: %v\n%s", want, err, out)
		}
		n.must(from, "ping", "-c", "1", "-w", "30", "-M", "do", "-s", fmt.Sprint(smallMTU-20-28), n.addr(to))
	}
}
