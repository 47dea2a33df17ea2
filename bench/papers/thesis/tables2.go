package thesis

import (
	"context"
	"fmt"

	"weft/bench/papers"
)

// Tables 2.1 and 2.2 are arithmetic: how many hosts the largest switches of a year can
// join without oversubscription, and what that costs. Here the hosts are counted. Costs are
// prices of vendors, which the thesis does not list.

const (
	edgeRate2012 = 10 // Gbit/s, of Table 2.2's hosts
	coreRate2012 = 40
)

// fatTreeHosts is of three layers of k-port switches.
func fatTreeHosts(k int) int { return k * k * k / 4 }

// fatTreeSwitches is how many they have.
func fatTreeSwitches(k int) int { return 5 * k * k / 4 }

// folded is how many ports two layers of p-port switches offer below without
// oversubscription, with so many switches in the upper one, 0 for the most: p/2, since a
// switch of the lower layer has half of its ports above, and one for each of the upper. More
// than these cannot be joined.
func folded(p, upper int) int {
	if upper == 0 {
		upper = p / 2
	}
	return min(upper, p/2) * p
}

// designs counts what the tables of chapter 2 do, or what stands for it.
type designs struct{ o papers.Options }

// fatTree is its hosts, or of what stands for it.
func (d designs) fatTree(k int) float64 {
	if d.o.As("fat-tree") == "" {
		return float64(k * k / 2) // of two layers
	}
	return float64(fatTreeHosts(k))
}

// hierarchy has a core and aggregation layer of p-port switches, each of whose ports is as
// fast as perPort hosts.
func (d designs) hierarchy(p, perPort int) float64 {
	upper := 0
	switch as := d.o.As("core switches"); as {
	case "core switches":
	case "":
		upper = 1
	default:
		fmt.Sscan(as, &upper)
	}
	if as := d.o.As("hosts per port"); as != "hosts per port" {
		fmt.Sscan(as, &perPort)
	}
	return float64(folded(p, upper) * perPort)
}

var tables2Setting = []papers.Parameter{
	stated("fat-tree", "of the largest commodity switches in three layers, k³/4 hosts (§3.1.1)"),
	stated("hierarchy", "high-end switches in the core and aggregation layers, 1:1"),
	chosen("core", "half as many switches as one has ports", "the most that a switch of the layer below reaches with half of its ports; the thesis has no formula"),
	chosen("costs", "not compared, but for the product of two numbers of one sentence of the thesis, which scores nothing", "they are the prices of switches by vendor and year, which the thesis does not list"),
}

// coresByPaths are other numbers of core switches. 16 and 24 are fits: they were read from
// Table 2.1. That enterprise-scale routers have 16-way ECMP at most (§2.3.1) is said of
// routing tables, and the hierarchies of 140 and 768 ports have more. 4 is what ECMP of most
// switches has (§3.1.1).
func coresByPaths(ends, nearest string) papers.Decision {
	return papers.Decision{
		Parameter: "core switches of the hierarchy", About: []string{"hierarchy"},
		Ends: ends, Nearest: nearest, Discrete: true,
		Values: []papers.DecisionValue{
			{Name: "4, ECMP's of most switches", Replace: map[string]string{"core switches": "4"}},
			{Name: "16", Replace: map[string]string{"core switches": "16"}, Fitted: true},
			{Name: "24", Replace: map[string]string{"core switches": "24"}, Fitted: true},
		},
	}
}

var tables2Mutants = []papers.Mutant{
	{Name: "the fat-tree has two layers", About: []string{"fat-tree"}, Replace: map[string]string{"fat-tree": ""}},
	{Name: "the hierarchy has one core switch", About: []string{"hierarchy"}, Replace: map[string]string{"core switches": ""}},
}

func table21() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-t2.1", Source: "thesis §2.1.3, Table 2.1",
		Title: "the largest clusters of hosts with 1 Gbit/s without oversubscription: computed, costs left out",
		Setting: append([]papers.Parameter{
			chosen("a port of 10 Gbit/s", "is that of 10 hosts", "the ratio of the rates; the thesis has no formula"),
			chosen("ports of the smallest high-end switches", "28, 32 and 64", "the text that we have has lost the column; these are the ports of 2002, 2004 and 2006 as we recall them from the table's first version (SIGCOMM 2008, Table 2)"),
		}, tables2Setting...),
		Mutants: tables2Mutants,
		// No ends: the ports of the smallest are not stated, either.
		Decisions: []papers.Decision{coresByPaths("", ""), {
			Parameter: "hosts per port of 10 Gbit/s", About: []string{"hierarchy"},
			// "The first, used at the edge of the tree, is a 48-port GigE switch, with four 10GigE
			// uplinks" (§2.1.1); with all of its ports taken that is 1.2:1.
			Ends: "the ratio of the rates, or that of an edge switch's ports, 48 to 4", Discrete: true,
			Values: []papers.DecisionValue{{Name: "12", Replace: map[string]string{"hosts per port": "12"}}},
		}},
		Run: runTable21,
	}
}

func runTable21(_ context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	d := designs{o}
	for _, r := range []struct{ ports, hosts int }{{28, 4_480}, {32, 7_680}, {64, 10_240}, {128, 20_480}, {140, 98_000}, {768, 2_949_120}} {
		out.Rows = append(out.Rows, papers.Within(fmt.Sprintf("hierarchy of %d-port switches", r.ports), "hosts", float64(r.hosts), d.hierarchy(r.ports, 10), tolerance))
	}
	for _, r := range []struct{ ports, hosts int }{{28, 5_488}, {48, 27_648}, {96, 221_184}} {
		label := fmt.Sprintf("fat-tree of %d-port switches", r.ports)
		out.Rows = append(out.Rows, papers.Within(label, "hosts", float64(r.hosts), d.fatTree(r.ports), tolerance),
			papers.Info(label, "switches per 1,000 hosts", 1000*float64(fatTreeSwitches(r.ports))/float64(fatTreeHosts(r.ports))))
	}
	explain(out, o, "the thesis' hierarchies of 28, 64 and 128 ports have as many hosts as 16 times their ports of 10 hosts each, that of 32 ports as 24 times, and from 140 ports on as half of the ports times these; we know no reason for 16 and 24, and switches of 28 and 32 ports cannot join so many core switches without oversubscription, since half of their ports are 14 and 16")
	return unchanged(out, o), nil
}

// unchanged says that a quick run computes the same.
func unchanged(out *papers.Outcome, o papers.Options) *papers.Outcome {
	if o.Quick {
		out.Settings = append(out.Settings, chosen("table", "all of it", "quick, as there is nothing to make smaller"))
	}
	return out
}

func table22() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-t2.2", Source: "thesis §2.1.3, Table 2.2",
		Title:   "the largest clusters of hosts with 10 Gbit/s without oversubscription: computed, costs left out",
		Setting: append([]papers.Parameter{stated("a port of 40 Gbit/s", "is that of 4 hosts: Table 2.2 is of 10GigE hosts and an oversubscription ratio of 1:1, by 40GigE switches for aggregation and core layers (§2.1.3)")}, tables2Setting...),
		Mutants: tables2Mutants,
		Decisions: []papers.Decision{coresByPaths(
			"a switch of the layer below joins half as many core switches as it has ports, or as many as ECMP has paths",
			"half of the ports is the most without oversubscription, fewer join fewer hosts, and the thesis has more",
		), {
			Parameter: "hosts per port of the aggregation layer", About: []string{"hierarchy"},
			// 10 is the ratio of Table 2.1.
			Against: "Table 2.2: \"The maximum possible cluster size, for 10GigE hosts and an oversubscription ratio of 1:1\", by \"40GigE switches for aggregation and core layers\" (§2.1.3): ten such hosts a port are 2.5:1",
			Values:  []papers.DecisionValue{{Name: "10", Replace: map[string]string{"hosts per port": "10"}, Fitted: true}},
		}},
		Run: runTable22,
	}
}

func runTable22(_ context.Context, o papers.Options) (*papers.Outcome, error) {
	d := designs{o}
	const fat = "fat-tree of 48-port switches"
	out := &papers.Outcome{Rows: []papers.Row{
		papers.Within("hierarchy of 96-port switches", "hosts", 46_080, d.hierarchy(96, coreRate2012/edgeRate2012), tolerance),
		papers.Within(fat, "hosts", 27_648, d.fatTree(48), tolerance),
		papers.Within(fat, "cost at the thesis' $520 a host, million $", 14.4, 520*d.fatTree(48)/1e6, tolerance).Fitted(), // the same sentence has both
	}}
	explain(out, o, "46,080 are as many hosts as if a port of 40 Gbit/s were that of ten hosts of 10 Gbit/s; it is that of four")
	return unchanged(out, o), nil
}
