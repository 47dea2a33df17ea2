package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
)

func TestNew_everyName(t *testing.T) {
	cell := flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: 65536}
	flowlet := flowcell.Unit{Kind: flowcell.UnitFlowlet, Gap: 500 * time.Microsecond}
	want := []Policy{
		row("ecmp", flowcell.Unit{Kind: flowcell.UnitFlow}, drb.Hash, "baseline"),
		row("rb", flowcell.Unit{}, drb.Random, "DRB §3.1.2"),
		row("rrb", flowcell.Unit{}, drb.RoundRobin, "DRB §3.1.2"),
		row("drb", flowcell.Unit{}, drb.DigitReversal, "DRB §3.1.2"),
		row("presto", cell, drb.RoundRobin, "Luopan §2.1"),
		row("flowcell-drb", cell, drb.DigitReversal, "ours"),
		{Name: "auto", Unit: cell, Rule: drb.DigitReversal, Source: "ours", Adapts: true, most: 65536},
		row("letflow", flowlet, drb.Random, "Luopan §6"),
		row("rand", cell, drb.Random, "Luopan §4.1"),
		{Name: "luopan", Unit: cell, Rule: drb.Random, Aware: Sampled, Source: "Luopan §3"},
		{Name: "conga", Unit: flowlet, Rule: drb.Random, Aware: Informed, Source: "CONGA §3"},
		{Name: "local", Unit: cell, Rule: drb.Random, Aware: Backlogged, Source: "Luopan §4.1"},
		{Name: "drill", Unit: flowcell.Unit{}, Rule: drb.Random, Aware: Backlogged, Source: "DRILL §3.2"},
		{Name: "reps", Unit: flowcell.Unit{}, Rule: drb.Random, Aware: Heeding, Source: "REPS §3", heeding: table[len(table)-1].heeding},
	}
	for i, w := range want {
		if got, err := New(w.Name, Options{}); err != nil || got != w {
			t.Errorf("New(%q) = %+v, %v; want %+v", w.Name, got, err, w)
		}
		if names := Names(); len(names) != len(want) || names[i] != w.Name {
			t.Errorf("Names() = %v, want %s at %d of %d", names, w.Name, i, len(want))
		}
	}
}

func TestNew_adjustsItsUnitOnly(t *testing.T) {
	o := Options{FlowcellBytes: 10_000, FlowletGap: time.Millisecond}
	for _, name := range Names() {
		want, _ := New(name, Options{})
		switch want.Unit.Kind {
		case flowcell.UnitFlowcell:
			want.Unit.Bytes = 10_000
			if want.Adapts {
				want.most = 10_000
			}
		case flowcell.UnitFlowlet:
			want.Unit.Gap = time.Millisecond
		}
		if got, err := New(name, o); err != nil || got != want {
			t.Errorf("New(%q, %+v) = %+v, %v; want %+v", name, o, got, err, want)
		}
		// The table is not changed by it.
		if got, _ := New(name, Options{}); got.Unit == want.Unit && got.Unit.Cuts() {
			t.Errorf("%s keeps the options of who came before: %+v", name, got)
		}
	}
}

func TestNew_groupsWhereAFlowMayChangePaths(t *testing.T) {
	for _, name := range Names() {
		with, err := New(name, Options{Groups: true})
		if err != nil || with.Groups != with.Sprays() {
			t.Errorf("%s keeps to groups: %v, %v", name, with.Groups, err)
		}
		without, _ := New(name, Options{})
		if with.Groups = false; without != with {
			t.Errorf("%s: %+v, with groups %+v", name, without, with)
		}
	}
}

func TestNew_badOptionsNameTheField(t *testing.T) {
	for _, c := range []struct {
		options Options
		names   []string // empty: fine
	}{
		{Options{FlowcellBytes: -1}, []string{"FlowcellBytes is -1", "1024 to 1048576", "65536"}},
		{Options{FlowcellBytes: 1023}, []string{"FlowcellBytes is 1023"}},
		{Options{FlowcellBytes: 1024}, nil},
		{Options{FlowcellBytes: 1 << 20}, nil},
		{Options{FlowcellBytes: 1<<20 + 1}, []string{"FlowcellBytes is 1048577"}},
		{Options{FlowletGap: -1}, []string{"FlowletGap is -1ns", "1µs to 10s", "500µs"}},
		{Options{FlowletGap: 999}, []string{"FlowletGap is 999ns"}},
		{Options{FlowletGap: time.Microsecond}, nil},
		{Options{FlowletGap: 10 * time.Second}, nil},
		{Options{FlowletGap: 10*time.Second + 1}, []string{"FlowletGap is 10.000000001s"}},
		{Options{Samples: -1}, []string{"Samples is -1", "1 to 36", "0 for 2"}},
		{Options{Samples: 1}, nil},
		{Options{Samples: 36}, nil},
		{Options{Samples: 37}, []string{"Samples is 37"}},
		{Options{Expiry: -1}, []string{"Expiry is -1ns", "10µs to 10s", "0 to follow"}},
		{Options{Expiry: 9999}, []string{"Expiry is 9.999µs"}},
		{Options{Expiry: 10 * time.Microsecond}, nil},
		{Options{Expiry: 10 * time.Second}, nil},
		{Options{Expiry: 10*time.Second + 1}, []string{"Expiry is 10.000000001s"}},
		{Options{LinkRateBits: -1}, []string{"LinkRateBits is -1", "1000 to 1e+13", "0 for 10e9"}},
		{Options{LinkRateBits: 999}, []string{"LinkRateBits is 999"}},
		{Options{LinkRateBits: 1000}, nil},
		{Options{LinkRateBits: 1e13}, nil},
		{Options{LinkRateBits: math.NaN()}, []string{"LinkRateBits is NaN"}},
		{Options{LinkRateBits: math.Inf(1)}, []string{"LinkRateBits is +Inf"}},
		{Options{Tau: -1}, []string{"Tau is -1ns", "1µs to 10s", "0 for 160µs"}},
		{Options{Tau: time.Microsecond}, nil},
		{Options{Tau: 10 * time.Second}, nil},
		{Options{Tau: 10*time.Second + 1}, []string{"Tau is 10.000000001s"}},
	} {
		for _, name := range Names() { // one set of options serves all
			_, err := New(name, c.options)
			if (err == nil) != (c.names == nil) {
				t.Errorf("New(%q, %+v): %v", name, c.options, err)
			}
			for _, s := range c.names {
				if err != nil && !strings.Contains(err.Error(), s) {
					t.Errorf("New(%q, %+v): %v; does not say %q", name, c.options, err, s)
				}
			}
		}
	}
}

func TestNames_areFoundAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		if p, err := New(name, Options{}); err != nil || p.Name != name || p.Source == "" || seen[name] {
			t.Errorf("New(%q) = %+v, %v", name, p, err)
		}
		seen[name] = true
	}
	if !seen[Default] || !seen[PerFlow.Name] {
		t.Errorf("default %q or per-flow %q is not in the table", Default, PerFlow.Name)
	}
}

func TestNew_unknownListsTheKnown(t *testing.T) {
	for _, name := range []string{"", "DRB", "drb ", "letfly"} {
		_, err := New(name, Options{})
		if err == nil {
			t.Errorf("New(%q) finds something", name)
			continue
		}
		for _, s := range append(Names(), `"`+name+`"`) {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("New(%q): %v; does not say %s", name, err, s)
			}
		}
	}
}

// What a policy goes by is said by How, and nobody who is aware of something needs
// a rule that goes round in an order.
func TestHow(t *testing.T) {
	for name, want := range map[string]string{
		"ecmp": "hash", "drb": "digit reversal", "presto": "round robin", "letflow": "random", "rand": "random",
		"luopan": "least congested sample", "conga": "least congested path",
		"local": "least own backlog", "drill": "least own backlog",
		"reps": "paths of acknowledged packets",
	} {
		p, err := New(name, Options{})
		if err != nil || p.How() != want {
			t.Errorf("%s chooses by %q, %v; want %q", name, p.How(), err, want)
		}
		if p.Aware != Oblivious && p.Rule != drb.Random {
			t.Errorf("%s chooses by %v while it knows nothing", name, p.Rule)
		}
	}
}

func TestSprays_onlyWhenAFlowMayChangePaths(t *testing.T) {
	for _, name := range Names() {
		if p, _ := New(name, Options{}); p.Sprays() != (name != "ecmp") {
			t.Errorf("%s sprays: %v", name, p.Sprays())
		}
	}
	if PerFlow.Sprays() {
		t.Error("PerFlow sprays")
	}
}

func TestTable_unitsHaveTheirMeasure(t *testing.T) {
	for _, name := range Names() {
		p, _ := New(name, Options{})
		u := p.Unit
		if (u.Bytes > 0) != (u.Kind == flowcell.UnitFlowcell) || (u.Gap > 0) != (u.Kind == flowcell.UnitFlowlet) {
			t.Errorf("%s: %+v", name, u)
		}
		if !slices.Contains([]drb.Rule{drb.DigitReversal, drb.RoundRobin, drb.Random, drb.Hash}, p.Rule) {
			t.Errorf("%s has no rule", name)
		}
	}
}

func TestAt_fitsTheUnit(t *testing.T) {
	cell := func(bytes int) flowcell.Unit { return flowcell.Unit{Kind: flowcell.UnitFlowcell, Bytes: bytes} }
	for _, c := range []struct {
		options Options
		slowest float64 // Mbit/s
		want    flowcell.Unit
	}{
		{Options{}, 0, cell(65536)},
		{Options{}, 100, flowcell.Unit{}},
		{Options{}, 2000, cell(32768)},
		{Options{}, 100_000, cell(65536)},
		{Options{LinkRateBits: 100e6}, 0, flowcell.Unit{}},
		{Options{LinkRateBits: 100e6}, 100_000, cell(65536)},
		{Options{FlowcellBytes: 8192}, 100, flowcell.Unit{}},
		{Options{FlowcellBytes: 8192}, 2000, cell(8192)},
		{Options{FlowcellBytes: 8192}, 0, cell(8192)},
		{Options{FlowcellBytes: 1 << 20}, 0, cell(65536)},
	} {
		p, err := New("auto", c.options)
		if err != nil {
			t.Fatal(err)
		}
		at := p.At(c.options.Rate(c.slowest))
		if at.Unit != c.want || at.Rule != drb.DigitReversal || at.Name != "auto" || at.At(1e6) != p.At(1e6) {
			t.Errorf("%+v at %v Mbit/s: %+v, want units of %v", c.options, c.slowest, at, c.want)
		}
	}
	for _, name := range Names() {
		p, _ := New(name, Options{})
		if at := p.At(1e6); (at == p) != (name != Default) || !at.AtUplink() && p.AtUplink() {
			t.Errorf("%s at 1 Mbit/s: %+v", name, at)
		}
	}
}
