package thesis

import (
	"context"

	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/hedera"
)

func greedy() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-3.1.7", Source: "thesis §3.1.7, footnote 4",
		Title: "the flow scheduler's greedy search among 27,648 hosts",
		Setting: []papers.Parameter{
			stated("fabric", "fat-tree, k = 48, 27,648 hosts"),
			stated("traffic", "every host sends to a random one"),
			stated("scheduler", "one flow after the other on the first path no link of which is reserved"),
			chosen("mapping", "one to one", "as in §3.5.2; one large flow per host is what the scheduler is for"),
			chosen("who finds no path", "counts nothing; and beside it: takes a path by hash", "the thesis does not say what efficiency is"),
		},
		Mutants: []papers.Mutant{{Name: "the scheduler reserves nothing", About: []string{"greedy"}, Replace: map[string]string{"first fit": ""}}},
		Run:     runGreedy,
	}
}

func runGreedy(_ context.Context, o papers.Options) (*papers.Outcome, error) {
	k := 48
	out := &papers.Outcome{}
	if o.Quick {
		k = 16
		out.Settings = append(out.Settings, chosen("fabric", "k = 16, 1,024 hosts", "quick"))
	}
	t, f, err := fabricOf(fatTree(k))
	if err != nil {
		return nil, err
	}
	to, err := randomBijection.make(t, o.Seed)
	if err != nil {
		return nil, err
	}
	all := pairs(to)
	paths := hash(f, all, fluid.ByFlow, o.Seed)
	hashed := f.MaxMin(all, paths)
	unscheduled := total(hashed)
	placed := 0
	fit := hedera.NewFirstFit(f)
	for i, p := range all {
		if o.As("first fit") == "" { // has a path of its own by luck
			if hashed[i] >= f.Capacity()[0]*.999 {
				placed++
			}
		} else if path, ok := fit.Place(p, 1); ok {
			paths[i] = path
			placed++
		}
	}
	full := float64(len(all)) * f.Capacity()[0] / 100
	out.Rows = []papers.Row{
		papers.Within("greedy search", "flows with a path of their own, %", 94, 100*float64(placed)/float64(len(all)), tolerance),
		papers.Info("greedy search, others by hash", "of full bisection, %", total(f.MaxMin(all, paths))/full),
		papers.Info("all by hash", "of full bisection, %", unscheduled/full),
	}
	return out, nil
}
