package thesis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/topology"
)

// The thesis has run one mapping of a random pattern, or five, and does not say which. They
// are told apart here by what they are like, and not by what comes out of them.

// likeness is what a mapping is like, as far as all schemes depend on it.
type likeness struct {
	receivers int // hosts that receive
	local     int // flows that stay in their pod, and once more those that stay in their rack
	podPairs  int // pods that send to another, by both
}

func likenessOf(f *fluid.Fabric, to []topology.NodeID) (l likeness) {
	receives := make(map[topology.NodeID]bool)
	pods := make(map[[2]int]bool)
	for h, dst := range to {
		src := topology.NodeID(h)
		receives[dst] = true
		switch {
		case f.Rack(src) == f.Rack(dst):
			l.local += 2
		case f.Pod(src) == f.Pod(dst):
			l.local++
		default:
			pods[[2]int{f.Pod(src), f.Pod(dst)}] = true
		}
	}
	l.receivers, l.podPairs = len(receives), len(pods)
	return l
}

func (l likeness) plus(m likeness) likeness {
	return likeness{l.receivers + m.receivers, l.local + m.local, l.podPairs + m.podPairs}
}

// compare orders mappings by how much of them a fabric can carry: by receivers, then by local
// flows, then by pairs of pods.
func (l likeness) compare(m likeness) int {
	return cmp.Or(cmp.Compare(l.receivers, m.receivers), cmp.Compare(l.local, m.local), cmp.Compare(l.podPairs, m.podPairs))
}

// atQuantile is the number of the mapping, or set of mappings, at a quantile of all in that
// order.
func atQuantile(all []likeness, percent float64) int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return all[a].compare(all[b]) })
	return order[int(percent/100*float64(len(order)-1)+.5)]
}

// drawnMappings are other mappings than all of those that are drawn: the ones at quantiles
// of what they are like. Quantiles of likeness do not span what comes out of mappings, so no
// row is immovable by them.
func drawnMappings(parameter, of string, about ...string) papers.Decision {
	d := papers.Decision{Parameter: parameter, About: about}
	for _, percent := range []int{0, 10, 25, 50, 75, 90, 100} {
		d.Values = append(d.Values, papers.DecisionValue{
			Name:    fmt.Sprintf("at %d %% of %s", percent, of),
			Replace: map[string]string{"mappings": fmt.Sprint(percent)},
		})
	}
	return d
}

// fitted is a decision each of whose values is a fit.
func fitted(d papers.Decision) papers.Decision {
	d.Ends = ""
	d.Values = slices.Clone(d.Values)
	for i := range d.Values {
		d.Values[i].Fitted = true
	}
	return d
}

// fitWith is a decision each of whose values replaces something else, too, by a fit.
func fitWith(d papers.Decision, name, as string) papers.Decision {
	d = fitted(d)
	for i := range d.Values {
		d.Values[i].Replace = maps.Clone(d.Values[i].Replace)
		d.Values[i].Replace[name] = as
	}
	return d
}

// quantileOf is which of the mappings a run takes, in percent; false: all of them.
func quantileOf(o papers.Options) (percent float64, one bool) {
	percent = valueOf(o, "mappings", -1)
	return percent, percent >= 0
}
