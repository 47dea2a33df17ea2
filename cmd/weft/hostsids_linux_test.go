package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/frr"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// Hosts send both families by an operator's micro-SIDs, which the kernels of the spines take
// off and FRR announces. The fabric is a file, in either mode.
func TestHost_sendsBySIDs(t *testing.T) {
	slowtest.System(t)
	for _, mode := range []string{"offload", "gateway"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "gateway" {
				slowtest.Release(t, "TestHost_learnsSIDsFromFRR", "a gateway whose locators are from a file")
			}
			l, g := upSIDLab(t)
			file := filepath.Join(l.dir, "graph.yaml")
			if err := os.WriteFile(file, g.Text(), 0o644); err != nil {
				t.Fatal(err)
			}
			l.sendsBySIDs(func(int, string) string { return "mode: " + mode + "\ntopology: " + file + "\n" })
		})
	}
}

// The same without a file: BGP tells which locators there are.
func TestHost_learnsSIDsFromFRR(t *testing.T) {
	slowtest.Unraced(t)
	for _, mode := range []string{"offload", "gateway"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "offload" {
				slowtest.Release(t, "TestHost_sendsBySIDs", "mode offload whose locators are from BGP")
			}
			l, _ := upSIDLab(t)
			l.sendsBySIDs(func(i int, host string) string {
				route := strings.Fields(l.in(host, "ip route show default"))
				return fmt.Sprintf("mode: %s\ntopology: bgp\nbgp: {as: %d, neighbors: [%s=%s], sid_block: \"fcbb:bbbb::/32\"}\n",
					mode, 4250000001+i, route[2], l.asOf(fmt.Sprintf("leaf%d", i+1)))
			})
		})
	}
}

// upSIDLab is a lab whose spines have locators.
func upSIDLab(t *testing.T) (*bgpLab, *graph.Graph) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	shape, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	spec := operator.Spec(shape, 7)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; n.Tier == 2 {
			n.SIDs.Node = netip.MustParsePrefix(fmt.Sprintf("fcbb:bbbb:%d::/48", i+1))
		}
	}
	g, err := graph.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	l := &bgpLab{TB: t, name: fmt.Sprintf("t%ds", os.Getpid()), dir: t.TempDir()}
	fabric, err := lab.Up(t.Context(), lab.Config{Name: l.name, Graph: g, RateMbit: 50})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fabric.Close()
		if _, err := lab.Down(l.name); err != nil {
			t.Error(err)
		}
	})
	return l, g
}

// sendsBySIDs runs weft host at both hosts, and looks at what leaves the first one's leaf.
// config is what a host's configuration says besides.
func (l *bgpLab) sendsBySIDs(config func(i int, host string) string) {
	hosts := []string{"h1-1", "h2-1"}
	for i, host := range hosts {
		l.configure(host, "policy: drb\nencapsulation: srv6\nuser: root\n"+config(i, host))
	}
	for _, host := range hosts {
		l.in(host, "sysctl -qw net.ipv6.conf.all.forwarding=0")
	}
	l.carryBoth(hosts...)
	for _, family := range []string{"-4", "-6"} {
		before := l.byPort("leaf1")
		if by := l.sendBy(family, "h1-1", "h2-1"); by["spine1"]+by["spine2"] > 0 {
			l.Errorf("%s: programs of weft took the headers off: %v", family, by)
		}
		after := l.byPort("leaf1")
		var up []uint64
		for port, sent := range after {
			if strings.HasPrefix(port, "spine") {
				up = append(up, sent-before[port])
			}
		}
		if len(up) != 2 || min(up[0], up[1]) < 1_500_000 {
			l.Errorf("%s: leaf1 sent up %v bytes of 5 MB, want some half by each port", family, up)
		}
	}
}

// byPort returns what a node has sent out of each port, by the port's peer, in bytes.
func (l *bgpLab) byPort(node string) map[string]uint64 {
	l.Helper()
	all := make(map[string]uint64)
	for _, n := range l.nodes() {
		if n.Node == node {
			for _, p := range n.Ports {
				all[p.Peer] = p.TxBytes
			}
		}
	}
	return all
}
