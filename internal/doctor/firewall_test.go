package doctor

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/overview"
)

// A firewall is at fault only if it surely drops one of weft's packets, or has a rule that names
// its protocol or port.
func TestFirewall(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules string // of the chain, as JSON
		drops bool   // by policy
		hook  string
		role  string
		want  string // in the cause; "" if nothing is wrong
	}{
		{"the port alone", `[{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":9338}},{"drop":null}]`, false, "input", RoleHost, "link-state updates (UDP 9338) at input"},
		{"another port", `[{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":53}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"all but a port", `[{"match":{"op":"!=","left":{"payload":{"protocol":"udp","field":"dport"}},"right":53}},{"drop":null}]`, false, "input", RoleHost, "UDP 9338"},
		{"TCP's port of that number", `[{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":9338}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"all UDP of some hosts", `[{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":"10.1.0.2"}},{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":17}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"IP-in-IP of some hosts", `[{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":"10.1.0.2"}},{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":"ipencap"}},{"drop":null}]`, false, "forward", RoleSwitch, "IP-in-IP"},
		{"an accepted network, then the policy", `[{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"saddr"}},"right":{"prefix":{"addr":"10.0.0.0","len":8}}}},{"accept":null}]`, true, "input", RoleHost, ""},
		{"nothing is accepted", `[{"counter":null}]`, true, "forward", RoleSwitch, "policy of chain c"},
		{"a policy of the output", `[{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":{"set":[6,17]}}},{"accept":null}]`, true, "output", RoleHost, "IP-in-IP (protocol 4) at output"},
		{"invalid state", `[{"match":{"op":"==","left":{"ct":{"key":"state"}},"right":"invalid"}},{"drop":null}]`, false, "forward", RoleSwitch, ""},
		{"rate limit", `[{"limit":{"rate":5}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"IPv6 alone", `[{"match":{"op":"==","left":{"meta":{"key":"nfproto"}},"right":"ipv6"}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"a port that hosts hear by packet sockets", `[{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":9339}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"what comes by the uplink alone", `[{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"p0"}},{"accept":null}]`, true, "input", RoleHost, "TCP that weft hands over by weft0"},
		{"TCP to a port", `[{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":9338}},{"accept":null},{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":443}},{"accept":null}]`, false, "input", RoleHost, ""},
		{"a set of a name", `[{"match":{"op":"!=","left":{"payload":{"protocol":"udp","field":"dport"}},"right":"@s"}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"a set of a name is accepted", `[{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":"@s"}},{"accept":null}]`, true, "forward", RoleSwitch, "IP-in-IP"},
		{"a set of protocols is accepted", `[{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":"@s"}},{"accept":null}]`, true, "forward", RoleSwitch, ""},
		{"a service by its name", `[{"match":{"op":"!=","left":{"payload":{"protocol":"udp","field":"dport"}},"right":"weft"}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"a map of verdicts", `[{"vmap":{"key":{"payload":{"protocol":"ip","field":"protocol"}},"data":{"set":[[4,{"accept":null}]]}}}]`, true, "forward", RoleSwitch, ""},
		{"connections beyond a number", `[{"ct count":{"val":5,"inv":true}},{"drop":null}]`, false, "forward", RoleSwitch, ""},
		{"beyond a quota", `[{"quota":{"val":5,"inv":true}},{"drop":null}]`, false, "forward", RoleSwitch, ""},
		{"what is not known yet", `[{"newstatement":{}}]`, true, "forward", RoleSwitch, ""},
		{"counted", `[{"counter":{"packets":0}},{"drop":null}]`, false, "forward", RoleSwitch, "IP-in-IP"},
		{"known connections alone, numeric", `[{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":[2,4]}},{"accept":null}]`, true, "forward", RoleSwitch, "IP-in-IP"},
		{"new connections, numeric", `[{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":[8,2]}},{"accept":null}]`, true, "forward", RoleSwitch, ""},
		{"IPv6 alone, numeric", `[{"match":{"op":"==","left":{"meta":{"key":"nfproto"}},"right":10}},{"drop":null}]`, false, "input", RoleHost, ""},
		{"all", `[{"drop":null}]`, false, "input", RoleHost, "drop, in chain c"},
	} {
		policy := "accept"
		if c.drops {
			policy = "drop"
		}
		chains, err := ParseNFT([]byte(`{"nftables":[{"chain":{"family":"inet","table":"t","name":"c","hook":"` + c.hook + `","prio":0,"policy":"` + policy + `"}},
			{"rule":{"family":"inet","table":"t","chain":"c","expr":` + c.rules + `}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		f := &Facts{Role: c.role, Firewall: chains, Config: &Config{Carrier: "ipip", Signed: true, Gateway: true, TUN: "weft0"}}
		all, _ := askFirewall(f)
		var got strings.Builder
		for _, g := range all {
			got.WriteString(g.Cause + "; ")
		}
		if c.want == "" && len(all) > 0 || !strings.Contains(got.String(), c.want) {
			t.Errorf("%s: %q, want %q", c.name, &got, c.want)
		}
	}
}

// A chain that a rule leads to is followed, and one that leads to itself ends.
func TestFirewall_jumps(t *testing.T) {
	drop := Rule{Verdict: "drop", Text: "drop"}
	jump := Rule{Verdict: "jump", Target: "b", Text: "jump b"}
	for _, c := range []struct {
		name string
		base []Rule
		b    []Rule
		want int
	}{
		{"the other chain drops", []Rule{jump}, []Rule{drop}, 1},
		{"it accepts first", []Rule{jump, drop}, []Rule{{Verdict: "accept"}}, 0},
		{"it returns", []Rule{jump, drop}, []Rule{{Verdict: "return"}, {Verdict: "accept"}}, 1},
		{"a loop", []Rule{jump}, []Rule{jump}, 0},
		{"it may be reached", []Rule{{Matches: []Match{{}}, Verdict: "jump", Target: "b"}}, []Rule{drop}, 0},
	} {
		f := &Facts{Role: RoleSwitch, Firewall: []Chain{{Family: "ip", Table: "t", Name: "a", Hook: "input", Rules: c.base}, {Family: "ip", Table: "t", Name: "b", Rules: c.b}}}
		if all, _ := askFirewall(f); len(all) != c.want {
			t.Errorf("%s: %+v, want %d", c.name, all, c.want)
		}
	}
}

// TCP of a connection that a firewall knows may pass; link-state updates, which nobody asks for, do
// not, and are looked for only where there are to be any.
func TestFirewall_established(t *testing.T) {
	chains, err := ParseNFT([]byte(`{"nftables":[{"chain":{"family":"ip","table":"t","name":"c","hook":"input","policy":"drop"}},
		{"rule":{"family":"ip","table":"t","chain":"c","expr":[{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}},{"accept":null}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	heard := &overview.Host{Failures: &overview.Failures{Updates: &overview.Updates{Switches: 2}}}
	for _, c := range []struct {
		name string
		f    Facts
		want int
	}{
		{"TCP by the TUN", Facts{Config: &Config{Carrier: "ipip", Gateway: true, TUN: "weft0"}}, 0},
		{"keys", Facts{Config: &Config{Carrier: "ipip", Signed: true}}, 1},
		{"a switch was heard", Facts{Config: &Config{Carrier: "ipip"}, Host: heard}, 1},
	} {
		c.f.Role, c.f.Firewall = RoleHost, chains
		if all, _ := askFirewall(&c.f); len(all) != c.want {
			t.Errorf("%s: %+v, want %d", c.name, all, c.want)
		}
	}
}

// A chain at devices concerns weft only if one of them is an uplink or the TUN.
func TestFirewall_devices(t *testing.T) {
	for _, c := range []struct {
		device string
		want   bool
	}{{`"p0"`, true}, {`["x","p0"]`, true}, {`"weft0"`, true}, {`"docker0"`, false}, {`["x","y"]`, false}, {`null`, false}} {
		chains, err := ParseNFT([]byte(`{"nftables":[{"chain":{"family":"netdev","table":"t","name":"c","hook":"ingress","dev":` + c.device + `}},
			{"rule":{"family":"netdev","table":"t","chain":"c","expr":[{"drop":null}]}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		f := &Facts{Role: RoleHost, Firewall: chains, Devices: []Device{{Name: "p0"}}, Config: &Config{Carrier: "ipip", Signed: true, Gateway: true, TUN: "weft0"}}
		f.Firewall[0].Hook = map[bool]string{true: "prerouting", false: "ingress"}[c.device == `"weft0"`] // where that packet is looked for
		if all, _ := askFirewall(f); (len(all) > 0) != c.want {
			t.Errorf("%s: %+v, want %t", c.device, all, c.want)
		}
	}
}

// ladder is chains of which each leads to the next twice: a packet has 2^n ways.
func ladder(n int) (all []Chain) {
	for i := range n {
		c := Chain{Family: "ip", Table: "t", Name: fmt.Sprint(i)}
		if i == 0 {
			c.Hook = "input"
		}
		for range 64 {
			c.Rules = append(c.Rules, Rule{Verdict: "jump", Target: fmt.Sprint(i + 1)})
		}
		all = append(all, c)
	}
	return append(all, Chain{Family: "ip", Table: "t", Name: fmt.Sprint(n), Rules: []Rule{{Verdict: "drop", Text: "the end"}}})
}

// Chains that lead to each other in very many ways are followed once each, and what is too much is
// said not to be looked at.
func TestFirewall_manyWays(t *testing.T) {
	f := &Facts{Role: RoleSwitch, Firewall: ladder(12)}
	for i := range f.Firewall[:12] { // the last jump alone may drop
		for j := range f.Firewall[i].Rules {
			f.Firewall[i].Rules[j].Matches = []Match{{}}
		}
	}
	if all, _ := askFirewall(f); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	f.Firewall[12].Rules[0].Matches = []Match{{Field: "protocol", Values: []Range{{protoIPIP, protoIPIP}}}}
	if all, _ := askFirewall(f); len(all) != 1 || !strings.Contains(all[0].Cause, "the end") {
		t.Errorf("%+v", all)
	}
	large := Rule{Matches: []Match{{Names: make([]string, mostVisits/4)}}}
	f.Firewall = []Chain{{Family: "ip", Table: "t", Name: "a", Hook: "input", Rules: []Rule{large, large, large, large}}}
	all, _ := askFirewall(f)
	if len(all) != 1 || !all[0].OK || all[0].Skipped == "" {
		t.Errorf("beyond the budget: %+v", all)
	}
}

// No ruleset makes it panic, or takes forever.
func FuzzParseNFT(f *testing.F) {
	f.Add([]byte(`{"nftables":[{"chain":{"family":"ip","table":"t","name":"c","hook":"input","policy":"drop"}},{"rule":{"family":"ip","table":"t","chain":"c","expr":[{"jump":{"target":"c"}},{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":{"set":[4,{"range":[1,2]}]}}}]}}]}`))
	many := `{"nftables":[{"chain":{"family":"ip","table":"t","name":"0","hook":"input"}}`
	for i := range 40 {
		many += fmt.Sprintf(`,{"chain":{"family":"ip","table":"t","name":"%d"}}`, i+1)
		for range 8 {
			many += fmt.Sprintf(`,{"rule":{"family":"ip","table":"t","chain":"%d","expr":[{"jump":{"target":"%d"}}]}}`, i, i+1)
		}
	}
	f.Add([]byte(many + "]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if chains, err := ParseNFT(text); err == nil {
			Examine(&Facts{Role: RoleSwitch, Firewall: chains})
		}
	})
}
