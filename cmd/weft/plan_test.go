package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/fabric"
	"weft/internal/frr"
	"weft/internal/golden"
)

// sidsFile is a leaf-spine of two and two with SIDs.
const sidsFile = "testdata/sids.yaml"

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
	wantError(t, "plan --for ios", `--for "ios": must be one of iproute2, frr, sonic, json`)
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
	wantError(t, "plan --for sonic --node a2.2", "--for sonic needs a graph with AS numbers", "fat-tree:k=4 routes are static")
}

// What is printed for SONiC, of a spine with SIDs and of a leaf with hosts, is as somebody has
// read it beside SONiC's YANG models. The lines for vtysh suit FRR.
func TestPlan_sonic(t *testing.T) {
	for _, node := range []string{"spine1", "leaf1"} {
		golden.Check(t, "plan-sonic-"+node+".txt", mustWeft(t, "plan", "--for", "sonic", "--topology", sidsFile, "--node", node))
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	for _, p := range graphPlans(t) {
		if p.SONiC == nil {
			continue
		}
		// SONiC's templates make the groups and the neighbours.
		made := []string{p.SONiC.VTYSH[0], " neighbor PEER_UNNUMBERED peer-group", " neighbor weft peer-group", " neighbor weft update-source 172.16.1.1"}
		for port := range p.SONiC.ConfigDB["BGP_NEIGHBOR"] {
			made = append(made, " neighbor "+port+" interface peer-group PEER_UNNUMBERED")
		}
		if err := frr.CheckConfig(strings.Join(append(append(made, "exit"), p.SONiC.VTYSH...), "\n") + "\n"); err != nil {
			t.Errorf("%s: %v", p.Node, err)
		}
	}
}

func graphPlans(t *testing.T) (list []graphPlan) {
	t.Helper()
	if err := json.Unmarshal([]byte(mustWeft(t, "plan", "--json", "--topology", sidsFile)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// JSON has every node, and of switches all languages.
func TestPlan_graphJSON(t *testing.T) {
	list := graphPlans(t)
	if len(list) != 6 {
		t.Fatalf("%d nodes", len(list))
	}
	for _, p := range list {
		isSwitch, hasSIDs := p.Layer != "host", strings.HasPrefix(p.Node, "spine")
		if (p.FRR != "" && p.SONiC != nil) != isSwitch || len(p.StaticSIDs) > 0 != hasSIDs || len(p.Local) > 0 != hasSIDs || p.Unplanned != "" {
			t.Errorf("%+v", p)
		}
	}
	var one graphPlan
	if err := json.Unmarshal([]byte(mustWeft(t, "plan", "--for", "json", "--topology", sidsFile, "--node", "spine2")), &one); err != nil || one.Node != "spine2" {
		t.Errorf("%+v, %v", one, err)
	}
}

// Without a node all are printed.
func TestPlan_everyNode(t *testing.T) {
	for args, want := range map[string][]string{
		"plan --topology leaf-spine:leaves=2,spines=2,hosts=1":       {"# ---- h0.0.2 ----", "# ---- e0.1 ----", "# ---- a0.1 ----"},
		"plan --for iproute2 --topology " + sidsFile:                 {"# ---- h1 ----", "# ---- spine2 ----", "action End.DT6 table main", "type ip6tnl local 2001:db8:f::1 "},
		"plan --for frr --topology " + sidsFile:                      {"! ---- leaf1 ----", "    prefix fcbb:bbbb:2::/48 func-bits 16", "!   ip -6 route replace fcbb:bbbb:2:f4::/64 "},
		"plan --for sonic --topology " + sidsFile + " --node spine2": {`"weft|fcbb:bbbb:2:f6::/64": {`, "  network fcbb:bbbb:2::/48"},
	} {
		out := mustWeft(t, strings.Fields(args)...)
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%s: no %q in\n%s", args, line, out)
			}
		}
	}
}

func TestPlan_graphBad(t *testing.T) {
	wantError(t, "plan --topology "+sidsFile+" --node leaf9", `node "leaf9": not in`)
	wantError(t, "plan --for sonic --topology "+sidsFile+" --node h1", "h1: is a host; name a switch")
	wantError(t, "plan --topology "+sidsFile+" --encap mpls", "--encap mpls")
	wantError(t, "plan --topology "+sidsFile+" --encap gre", "gre", "srv6")
	wantError(t, "plan --topology "+sidsFile+" --port-format eth%d", "a graph has the names of its ports")
	text, err := os.ReadFile(sidsFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "graph.yaml")
	for _, c := range []struct{ old, new, args, want string }{
		{"fcbb:bbbb:2:f6", "fcbb:bbbb:2:f4", "", "switch spine2: sids: decap4 and decap6 are one SID"},
		{", as: 65002", "", "--for frr", "spine2 has no AS"},
		{", as: 65002", "", "--for sonic --node spine2", "spine2 has no AS"},
		{"ports: [Ethernet4, Ethernet0]", "rate: 10", "", "has no name"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, "plan --topology "+file+" "+c.args, c.want)
	}
	if out := mustWeft(t, "plan", "--topology", file, "--node", "h1"); !strings.Contains(out, "ip address replace 192.168.1.2/32 dev eth1") {
		t.Error(out)
	}
}
