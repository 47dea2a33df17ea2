package main

import (
	"slices"
	"time"

	"weft/bench/testbed"
)

// weights are about how many seconds the demo's parts take: the lab, each row under each
// permutation, and the last part.
func (d *demo) weights(rows []testbed.Row) (all []float64) {
	if d.options.fabric == "netns" {
		all = append(all, buildSeconds(d.topology))
	}
	all = append(all, slices.Repeat([]float64{d.options.runSeconds()}, len(rows)*d.options.permutations)...)
	if !d.options.skipFailover && d.canFailSpines() == nil {
		failures := 0
		for _, e := range demoEpisodes {
			failures += len(e.kinds) * demoFailures
		}
		const afresh = 2 * time.Second // until hosts send again
		all = append(all, buildSeconds(d.topology)+float64(failures)*(demoOutage+demoSettle+afresh).Seconds())
	}
	return all
}

// buildSeconds is about how long a lab takes to be built.
func buildSeconds(t interface{ NumNodes() int }) float64 {
	const node = 0.1
	return node * float64(t.NumNodes())
}

// runSeconds is about how long a run takes, hosts' start included.
func (o *demoOptions) runSeconds() float64 {
	const start = time.Second
	return (o.warmup + o.duration + start).Seconds()
}
