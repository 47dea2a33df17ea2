package doctor

import (
	"strings"
	"testing"
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
		f := &Facts{Role: c.role, Firewall: chains, Config: &Config{Carrier: "ipip", Gateway: true, TUN: "weft0"}}
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

// No ruleset makes it panic.
func FuzzParseNFT(f *testing.F) {
	f.Add([]byte(`{"nftables":[{"chain":{"family":"ip","table":"t","name":"c","hook":"input","policy":"drop"}},{"rule":{"family":"ip","table":"t","chain":"c","expr":[{"jump":{"target":"c"}},{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":{"set":[4,{"range":[1,2]}]}}}]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if chains, err := ParseNFT(text); err == nil {
			Examine(&Facts{Role: RoleSwitch, Firewall: chains})
		}
	})
}
