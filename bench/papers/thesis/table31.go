package thesis

import (
	"context"
	"fmt"
	"math"

	"weft/bench/papers"
	"weft/topology"
)

// table31Rows are those of the thesis, in percent, by methods.
var table31Rows = []struct {
	pattern pattern
	paper   [4]float64
}{
	{randomBijection, [4]float64{53.4, 75.0, 76.3, 93.5}},
	{stride(1), [4]float64{100, 100, 100, 100}},
	{stride(2), [4]float64{78.1, 100, 100, 99.5}},
	{stride(4), [4]float64{27.9, 100, 100, 100}},
	{stride(8), [4]float64{28, 100, 100, 99.9}},
	{staggered(1, 0, true), [4]float64{100, 100, 100, 100}},
	{staggered(.5, .3, true), [4]float64{83.6, 82, 86.2, 93.4}},
	{staggered(.2, .3, true), [4]float64{64.9, 75.6, 80.2, 88.5}},
	{interPodIncoming, [4]float64{28, 50.6, 75.1, 99.9}},
	{sameIDOutgoing, [4]float64{27.8, 38.5, 75.4, 87.4}},
}

// Pattern is a row of Table 3.1.
type Pattern struct {
	Name string
	// To returns each host's receiver in fat-tree:k=4, by a seed; where it is one to one, no two
	// have the same.
	To func(seed uint64) ([]topology.NodeID, error)
	// TwoLevel, Classifier and Scheduler are what the thesis measured, in percent of the ideal
	// (Table 3.1), and the others what its 16 hosts reached of their links' payload (Table 4.3),
	// in percent, too. 0: it has none.
	TwoLevel, Classifier, Scheduler        float64
	ECMP, FirstFit, Annealing, NonBlocking float64
}

// Patterns returns the rows of Table 3.1 in its order, and the one of Table 4.3 with hotspots.
func Patterns() (list []Pattern) {
	rows := table31Rows[:len(table31Rows):len(table31Rows)]
	for _, row := range append(rows, struct {
		pattern pattern
		paper   [4]float64
	}{pattern: randomAny}) {
		to := func(seed uint64) ([]topology.NodeID, error) {
			t, err := topology.Parse(clickTree)
			if err != nil {
				return nil, err
			}
			return row.pattern.make(t, seed)
		}
		p := Pattern{Name: row.pattern.name, To: to, TwoLevel: row.paper[1], Classifier: row.paper[2], Scheduler: row.paper[3]}
		for _, r := range table43Rows {
			if r.pattern.name == p.Name {
				p.ECMP, p.FirstFit, p.Annealing, p.NonBlocking = percentOfPayload(r.gb[0]), percentOfPayload(r.gb[1]), percentOfPayload(r.gb[2]), percentOfPayload(r.gb[3])
			}
		}
		list = append(list, p)
	}
	return list
}

// percentOfPayload is what of 16 links of 1 Gbit/s carry so many GB/s of payload.
func percentOfPayload(gb float64) float64 { return 100 * gb * 8 / (16 * payloadPart) }

func table31() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-t3.1", Source: "thesis §3.5, Table 3.1",
		Title: "what arrives of constant traffic in a fat-tree of 16 hosts: tables, classifier, scheduler",
		Setting: []papers.Parameter{
			stated("fabric", "fat-tree, k = 4, all links 96 Mbit/s; the tree: 4 hosts per switch, links up of 106.67 Mbit/s"),
			stated("traffic", "every host sends 96 Mbit/s by UDP to one, and receives from one"),
			chosen("model", "rates; a full port passes the same part of every flow", "packets make no difference to constant rates, but for bursts"),
			chosen("mappings", "200 of each pattern, which the schemes share; the thesis: 5", "means of 5 vary by some percent"),
			chosen("worst cases", "any bijection between pods that has the property", "the thesis does not list its own"),
			chosen("classifier", "starts where fewest flows are, ties drawn at random", "the thesis does not say which of equals"),
		},
		Mutants: []papers.Mutant{
			{Name: "the scheduler moves no flow", About: []string{"scheduler"}, Replace: map[string]string{"flow scheduler": ""}},
			{Name: "the classifier hashes and moves no flow", About: []string{"classifier"}, Replace: map[string]string{"flow classifier": "hash"}},
		},
		Decisions: []papers.Decision{
			fitted(drawnMappings("five mappings of the pattern random", "40 sets", "random")),
			// The best of seven sets for one row of each pattern is a fit.
			fitted(drawnMappings("five mappings of the worst cases", "40 sets", "inter-pod incoming, flow classifier", "same-ID outgoing, flow classifier")),
			sameIDMappings(),
			neighbours,
			{Parameter: "port of equal ones that the classifier takes", About: []string{"flow classifier"},
				Ends: "it draws one, takes the first, or sees none of the flows that begin together", Discrete: true,
				Values: []papers.DecisionValue{
					{Name: "the first", Replace: map[string]string{"ties": "first"}},
					{Name: "any, since flows that begin together carry nothing yet", Replace: map[string]string{"ties": "unseen"}},
				}},
			{Parameter: "receivers of the pattern same-ID outgoing", About: []string{"same-ID outgoing"},
				Against: "any host receives traffic from exactly one host (§3.5.2)",
				Values:  []papers.DecisionValue{{Name: "some share one, against the thesis' words", Replace: map[string]string{"same-ID outgoing": "shared"}, Fitted: true}}},
		},
		Run: runTable31,
	}
}

func runTable31(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	mappings := 200
	out := &papers.Outcome{}
	if o.Quick {
		mappings = 5
		out.Settings = append(out.Settings, chosen("mappings", fmt.Sprint(mappings), "quick"))
	}
	parts := make([]columns, len(table31Rows))
	err := papers.Each(ctx, o, len(table31Rows), func(i int) (err error) {
		parts[i], err = percents(table31Rows[i].pattern, mappings, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range methods {
		names = append(names, m.name)
	}
	for i, row := range table31Rows {
		const metric = "arriving, % of ideal"
		ours := parts[i].mean
		for m := range methods {
			label := row.pattern.name + ", " + methods[m].name
			out.Rows = append(out.Rows, papers.Within(label, metric, row.paper[m], ours[m], tolerance))
			if i == 0 {
				out.Rows = append(out.Rows, papers.Info(label+", standard deviation of a mapping", metric, parts[i].deviation(m, mappings)))
			}
		}
		out.Rows = append(out.Rows, papers.OrderAs(row.pattern.name, names, row.paper[:], ours[:]))
	}
	explain(out, o, "random: of 40 sets of five mappings those tenth that are most local give the thesis' figures of the tree and of the two-level table, both; its own account of the table's 75 % leaves out collisions at cores and on the way down; "+
		"same-ID outgoing: by the thesis' tables nothing below 50 % is possible one to one, since what two rack-mates get through their one link up fits all links behind it, "+
		"so its 38.5 % has another cause: hosts that share a receiver would come near it, which the thesis rules out; mappings of both worst cases in which neighbours send as near to each other as the pattern allows give the thesis' figures of the classifier, both")
	out.Charts = []papers.Chart{chart31(parts)}
	return out, nil
}

// sameIDMappings are one to one, and all alike to the two-level table: both hosts of a rack
// send through the same link up, which halves what they send, and the links behind it carry
// what is left.
func sameIDMappings() papers.Decision {
	const all = "each mapping gives half, since rack-mates share one link up, and what they get through it fits the links behind"
	d := drawnMappings("mappings of the pattern same-ID outgoing", "40 sets", "same-ID outgoing, two-level table")
	d.Values = []papers.DecisionValue{d.Values[0], d.Values[len(d.Values)-1]}
	d.Ends, d.Nearest, d.Discrete = all, all, true
	return d
}

// chart31 is of the patterns in which the schemes differ most.
func chart31(parts []columns) papers.Chart {
	c := papers.Chart{Title: "Table 3.1", Y: "arriving, % of ideal"}
	for i, row := range table31Rows {
		if row.paper[1] == 100 {
			continue
		}
		for m := range methods {
			c.Bars = append(c.Bars, papers.Bar{Name: row.pattern.name + ", " + methods[m].name, Ours: parts[i].mean[m], Paper: &row.paper[m]})
		}
	}
	return c
}

// columns are the methods' means of a pattern.
type columns struct{ mean, squares [len(methods)]float64 }

func (c *columns) deviation(m, mappings int) float64 {
	return math.Sqrt(max(0, c.squares[m]-c.mean[m]*c.mean[m]) * float64(mappings) / float64(mappings-1))
}

// fiveOf are the mappings that the thesis has of each pattern.
const fiveOf = 5

// percents runs each method on mappings of a pattern.
func percents(p pattern, mappings int, o papers.Options) (c columns, err error) {
	hosts, err := topology.Parse(clickTree)
	if err != nil {
		return c, err
	}
	if o.As(p.name) == "shared" {
		p = sameIDShared
	}
	switch rule := o.As("neighbours"); {
	case rule == "neighbours":
	case p.name == interPodIncoming.name:
		p = incomingWhere(rule)
	case p.name == sameIDOutgoing.name:
		p = outgoingWhere(rule)
	}
	each := make([][len(methods)]float64, mappings)
	like := make([]likeness, mappings)
	for m, method := range methods {
		part := method.part
		switch {
		case o.As(method.name) == "":
			part = unmoved
		case o.As(method.name) == "hash":
			part = hashedPart
		case method.name == classifier:
			part = classifiedBy(classifierTies[o.As("ties")])
		}
		_, f, err := fabricOf(method.fabric)
		if err != nil {
			return c, err
		}
		for n := range mappings {
			own := derive(o.Seed, n)
			to, err := p.make(hosts, own)
			if err != nil {
				return c, err
			}
			each[n][m] = 100 * part(f, to, own)
			if m > 0 { // in the fat-tree
				like[n] = likenessOf(f, to)
			}
		}
	}
	if percent, one := quantileOf(o); one {
		return columnsOf(setAt(each, like, percent)), nil
	}
	return columnsOf(each), nil
}

// setAt is that of sets of fiveOf mappings which are next to each other that is at a quantile.
func setAt(each [][len(methods)]float64, like []likeness, percent float64) [][len(methods)]float64 {
	var sets []likeness
	for n := range len(each) / fiveOf {
		var of likeness
		for _, l := range like[n*fiveOf : (n+1)*fiveOf] {
			of = of.plus(l)
		}
		sets = append(sets, of)
	}
	n := atQuantile(sets, percent)
	return each[n*fiveOf : (n+1)*fiveOf]
}

func columnsOf(each [][len(methods)]float64) (c columns) {
	for _, row := range each {
		for m, percent := range row {
			c.mean[m] += percent / float64(len(each))
			c.squares[m] += percent * percent / float64(len(each))
		}
	}
	return c
}
