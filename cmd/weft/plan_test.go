package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/fabric"
)

func TestPlan(t *testing.T) {
	out := mustWeft(t, "plan", "--node", "a2.2", "--port-format", "swp%d")
	for _, want := range []string{
		"ip address replace 10.2.2.1/32 dev lo",
		"ip route replace 10.2.1.0/24 via 10.2.1.1 dev swp1 onlink",
		"ip route replace 10.4.1.2/32 via 10.4.1.2 dev swp3 onlink",
		"sysctl -w net.ipv4.conf.swp3.rp_filter=0",
		"ipip local 10.2.2.1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for node, want := range map[string]string{"3.0": "c1.1", "10.2.2.1": "a2.2", "h0.0.2": "h0.0.2"} {
		var p fabric.NodePlan
		if err := json.Unmarshal([]byte(mustWeft(t, "plan", "--json", "--node", node)), &p); err != nil {
			t.Fatal(err)
		}
		if p.Node != want || len(p.Routes) == 0 {
			t.Errorf("--node %s: %+v", node, p)
		}
	}
}

func TestPlan_encap(t *testing.T) {
	for carrier, want := range map[string]string{
		"srv6": "ip -6 route replace 5f00:300::/24 encap seg6local action End.X nh6 fd77:6566:7400::a00:201 flavors next-csid lblen 16 nflen 8",
		"mpls": "ip -f mpls route replace 18 via inet 10.0.2.1 dev p2",
		"ipip": "ip route replace 10.4.1.1/32 via 10.0.2.1 dev p2",
	} {
		out := mustWeft(t, "plan", "--node", "e0.0", "--encap", carrier)
		if !strings.Contains(out, want) {
			t.Errorf("--encap %s: no %q in\n%s", carrier, want, out)
		}
		if labels := strings.Contains(out, "5f00:") || strings.Contains(out, "mpls"); labels != (carrier != "ipip") {
			t.Errorf("--encap %s: labels: %v", carrier, labels)
		}
	}
}

func TestPlan_bad(t *testing.T) {
	wantError(t, "plan", "--node is missing")
	wantError(t, "plan --node 3.4", "3.4", "3.0 to 3.3")
	wantError(t, "plan --node a2.2 --port-format eth", "port format", "%d")
	wantError(t, "plan --node a2.2 --topology ring:n=4", "ring")
	wantError(t, "plan a2.2", "a2.2")
	wantError(t, "plan --node a2.2 --encap gre", "--encap", "gre", "srv6")
}

func TestPlan_frr(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.yaml")
	text := "nodes:\n  spine1: {tier: 2, addresses: [172.16.0.1], as: 65001}\n  leaf1: {tier: 1, addresses: [172.16.1.1], as: 65101}\n" +
		"links:\n  - {ends: [leaf1, spine1], ports: [swp1, swp7]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustWeft(t, "plan", "--for", "frr", "--topology", file)
	for _, want := range []string{"! ---- leaf1 ----\nhostname leaf1\n", "! ---- spine1 ----\nhostname spine1\n", "!   ip link set weft-decap0 up\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	wantError(t, "plan --for frr --topology "+file+" --node leaf9", `node "leaf9": not in`)
	wantError(t, "plan --for frr", "--for frr needs a graph with AS numbers")
	wantError(t, "plan --for sonic", `--for "sonic": must be iproute2 or frr`)
}
