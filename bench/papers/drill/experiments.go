package drill

import "weft/bench/papers"

// Experiments returns them in the paper's order.
func Experiments() []papers.Experiment {
	all := []papers.Experiment{
		balance, pitfalls, symmetric, scaledOut, oversubscribed, threeStages,
		reordering, oneFailure, tenFailures, heterogeneous, incast, synthetic,
	}
	for i := range all {
		all[i].Mutants = append(all[i].Mutants, noQueues)
	}
	return all
}

// noQueues is DRILL that looks at no queue.
var noQueues = papers.Mutant{Name: "DRILL takes random ports", About: []string{"DRILL", "(1,"}, Replace: map[string]string{
	drill.policy: random.policy, drillAll.policy: random.policy, drillFlow.policy: ecmp.policy,
}}
