package policy

import (
	"slices"
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
)

// Every row of the table is named here: a new one has to say whether the uplink's
// program carries it out.
func TestAtUplink_everyPolicy(t *testing.T) {
	const sent = "what was sent by each path, and when"
	want := map[string]string{ // what the program lacks
		"ecmp": "", "rb": "", "rrb": "", "drb": "", "presto": "", "flowcell-drb": "", "auto": "", "rand": "", "luopan": "",
		"letflow": "", "conga": "", "local": sent, "drill": sent, "reps": "what became of each flow's packets",
	}
	for _, name := range Names() {
		lacks, ok := want[name]
		if !ok {
			t.Errorf("%s is not in this test's table: say what the program at the uplink lacks for it", name)
			continue
		}
		for _, o := range []Options{{}, {FlowcellBytes: 2000, FlowletGap: time.Second, Samples: 3, Expiry: time.Second}} {
			p, err := New(name, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.UplinkLacks(); got != lacks || p.AtUplink() != (lacks == "") {
				t.Errorf("%s %+v: lacks %q, at the uplink %t; want %q", name, o, got, p.AtUplink(), lacks)
			}
		}
		if slices.Contains(NamesAtUplink(), name) != (lacks == "") {
			t.Errorf("%s lacks %q, and NamesAtUplink is %v", name, lacks, NamesAtUplink())
		}
	}
}

// The program keeps no group of paths for a flow. A flow that has one path keeps to it.
func TestAtUplink_groups(t *testing.T) {
	for _, name := range NamesAtUplink() {
		p, err := New(name, Options{Groups: true})
		if err != nil {
			t.Fatal(err)
		}
		if p.AtUplink() != (name == "ecmp") {
			t.Errorf("%s within groups of paths: at the uplink %t, lacks %q", name, p.AtUplink(), p.UplinkLacks())
		}
	}
}

// Rows that are not in the table are judged by what they need.
func TestAtUplink_otherRows(t *testing.T) {
	packet := flowcell.Unit{Kind: flowcell.UnitPacket}
	cell := flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: 65536}
	flow := flowcell.Unit{Kind: flowcell.UnitFlow}
	for _, p := range []Policy{
		{Name: "a path for each flow, drawn", Unit: flow, Rule: drb.Random},
		{Name: "a path for each flow, in turn", Unit: flow, Rule: drb.RoundRobin},
		{Name: "a path for each flow, sampled", Unit: flow, Rule: drb.Hash, Aware: Sampled},
		{Name: "packets by the flow's hash", Unit: packet, Rule: drb.Hash},
		{Name: "flowcells by the flow's hash", Unit: cell, Rule: drb.Hash},
		{Name: "packets by samples", Unit: packet, Rule: drb.Random, Aware: Sampled},
		{Name: "flowcells in turn by samples", Unit: cell, Rule: drb.RoundRobin, Aware: Sampled},
		{Name: "flowcells by reports", Unit: cell, Rule: drb.Random, Aware: Informed},
	} {
		if p.AtUplink() {
			t.Errorf("%s: the program at the uplink is said to carry that out", p.Name)
		}
	}
}
