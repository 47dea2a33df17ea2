package graph_test

import (
	"net/netip"
	"strings"
	"testing"

	"weft/topology/graph"
)

// What is left out is what FRR's ranges leave to operators, and is left out again.
func TestSIDs_leftOut(t *testing.T) {
	g := mustParse(t, small)
	id, _ := g.ByName("spine1")
	prefix := netip.MustParsePrefix
	want := graph.SIDs{Node: prefix("fcbb:bb00:1::/48"), Decap4: prefix("fcbb:bb00:1:fe04::/64"), Decap6: prefix("fcbb:bb00:1:fe06::/64")}
	if got := g.Node(id).SIDs; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if text := string(g.Text()); !strings.Contains(text, `sids: {node: "fcbb:bb00:1::/48"}}`) {
		t.Error(text)
	}
	if id, _ := g.ByName("spine2"); !g.Node(id).SIDs.None() || g.Node(id).SIDs.List() != nil {
		t.Errorf("%+v", g.Node(id).SIDs)
	}
	if back, err := graph.SIDsOf(want.List()); err != nil || back != want {
		t.Errorf("%+v, %v", back, err)
	}
}

// One SID may serve both families, as End.DT46 does.
func TestSIDs_ofAnOperator(t *testing.T) {
	const sids = `sids: {node: "fcbb:bb00:1::/48", decap4: "fcbb:bb00:1:f1::/64", decap6: "fcbb:bb00:1:f1::/64"}`
	g := mustParse(t, strings.Replace(small, `sids: {node: "fcbb:bb00:1::/48"}`, sids, 1))
	if text := string(g.Text()); !strings.Contains(text, sids) {
		t.Error(text)
	}
}

func TestSIDs_errors(t *testing.T) {
	const spine1, spine2 = `{node: "fcbb:bb00:1::/48"}`, "spine2: {tier: 2, addresses: [172.16.0.2]"
	for _, c := range []struct{ old, new, want string }{
		{spine1, `["fcbb:bb00:1::/48"]`, "line 2: node spine1: sids must be keys with values: node, decap4, decap6"},
		{spine1, `{node: fcbb, x: 1}`, `line 2: node spine1: sids: unknown key "x"`},
		{spine1, `{node: 1}`, "line 2: node spine1: sids: node: "},
		{spine1, `{decap4: "fcbb:bb00:1:1::/64"}`, "line 2: switch spine1: sids: node is missing"},
		{spine1, `{node: "fcbb:bb00:1::/64"}`, "line 2: switch spine1: sids: node: fcbb:bb00:1::/64, must be a locator"},
		{spine1, `{node: "fcbb:bb00:1:2::/48"}`, "must be a locator"},
		{spine1, `{node: "ff02:bb00:1::/48"}`, "must be a locator"},
		{spine1, `{node: "10.0.0.0/48"}`, "sids: node:"},
		{spine1, `{node: "10.0.0.0/8"}`, "must be a locator"},
		{spine1, `{node: "fcbb:bb00:1::/48", decap4: "fcbb:bb00:2:1::/64"}`, "sids: decap4: fcbb:bb00:2:1::/64, must be a function of fcbb:bb00:1::/48, such as fcbb:bb00:1:fe04::/64"},
		{spine1, `{node: "fcbb:bb00:1::/48", decap6: "fcbb:bb00:1::/64"}`, "sids: decap6: fcbb:bb00:1::/64, must be a function"},
		{spine1, `{node: "fcbb:bb00:1::/48", decap6: "fcbb:bb00:1:1::/80"}`, "sids: decap6:"},
		{spine2, spine2 + ", sids: " + spine1, "line 3: switch spine2: sids: spine1 (line 2) has the locator fcbb:bb00:1::/48, too"},
		{"db1:    {", "db1:    {sids: " + spine1 + ", ", "line 7: host db1: sids are for switches"},
		{"[172.16.0.2]", `[172.16.0.2, "fcbb:bb00:1::2"]`, "line 3: node spine2: its address fcbb:bb00:1::2 lies within the SIDs of spine1 (line 2)"},
		{"2001:db8::1", "fcbb:bb00:1:fe04::", "line 2: node spine1: its address fcbb:bb00:1:fe04:: lies within the SIDs of spine1"},
		{"192.168.2.0/26", `"fcbb:bb00:1:7::/64"`, "line 5: node leaf2: its prefix fcbb:bb00:1:7::/64 lies within the SIDs of spine1 (line 2)"},
		{"192.168.2.0/26", `"fcbb:bb00:1::/48"`, "line 5: node leaf2: its prefix"},
		{"192.168.2.0/26", `"fcbb:bb00::/32"`, "line 2: switch spine1: its locator fcbb:bb00:1::/48 lies within fcbb:bb00::/32 of leaf2 (line 5)"},
	} {
		if !strings.Contains(small, c.old) {
			t.Fatalf("%q is not there", c.old)
		}
		_, err := graph.Parse([]byte(strings.Replace(small, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.new, err, c.want)
		}
	}
	// The switch's own address may be in its locator.
	mustParse(t, strings.Replace(small, "2001:db8::1", "fcbb:bb00:1::1", 1))
	if _, err := graph.SIDsOf(make([]netip.Prefix, 2)); err == nil {
		t.Error("two prefixes are SIDs")
	}
}
