package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weft/bench/permutation"
	"weft/bench/stats"
	"weft/lab"
)

// permutationResult is a row's.
type permutationResult struct {
	Row            string  `json:"row"`
	Family         string  `json:"family"`
	Encap          string  `json:"encap"`
	Routing        string  `json:"routing"`
	PercentOfIdeal float64 `json:"percent_of_ideal"`
	Jain           float64 `json:"jain"`
	Retransmits    int64   `json:"retransmits"`
	RTTP50         float64 `json:"rtt_p50_us"`
	RTTP99         float64 `json:"rtt_p99_us"`
	SpineMin       float64 `json:"spine_share_min"` // of what all spines sent down
	SpineMax       float64 `json:"spine_share_max"`
	IdlePercent    float64 `json:"idle_percent"`
}

// measure runs a row in each family.
func (o *benchPermutationOptions) measure(ctx context.Context, l *lab.Lab, row permutationRow) (results []permutationResult, err error) {
	bed, err := o.bed(ctx, l, row)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	for _, family := range o.families {
		r, err := o.measureFamily(ctx, l, bed, row, family)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

func (o *benchPermutationOptions) measureFamily(ctx context.Context, l *lab.Lab, bed permutationBed, row permutationRow, family string) (res permutationResult, err error) {
	s, err := bed.session(ctx, family)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ideals := idealsOf(computedFabric{o.shape}, o.demo)
	before, err := o.sentDown(l)
	if err != nil {
		return res, err
	}
	var percent, jain, idle, retransmits, rtt []float64
	for i := range o.demo.permutations {
		o.progress.begin(fmt.Sprintf("%s by IPv%s, permutation %d of %d", row.name, family, i+1, o.demo.permutations))
		r, err := permutation.Run(ctx, s, permutation.Random(o.shape, o.demo.seed+uint64(i)), permutation.Load{
			Warmup: o.demo.warmup, Duration: o.demo.duration,
			Progress: o.progress.time,
		})
		if err != nil {
			return res, err
		}
		sum := 0.0
		for _, m := range r.Mbit {
			sum += m
		}
		percent, jain, idle = append(percent, percentOf(sum, ideals[i])), append(jain, stats.Jain(r.Mbit)), append(idle, r.IdlePercent)
		retransmits, rtt = append(retransmits, float64(r.Counters.Retransmits)), append(rtt, r.RTTMicros...)
	}
	after, err := o.sentDown(l)
	if err != nil {
		return res, err
	}
	sum := 0.0
	for i := range after {
		after[i] -= before[i]
		sum += after[i]
	}
	return permutationResult{Row: row.name, Family: family, Encap: o.demo.encap, Routing: o.routing, PercentOfIdeal: stats.Median(percent),
		Jain: stats.Median(jain), Retransmits: int64(stats.Median(retransmits)), RTTP50: stats.Percentile(rtt, 50), RTTP99: stats.Percentile(rtt, 99),
		SpineMin: slices.Min(after) / sum, SpineMax: slices.Max(after) / sum, IdlePercent: stats.Median(idle)}, nil
}

// sentDown returns what each switch of the highest tier has sent, in bytes.
func (o *benchPermutationOptions) sentDown(l *lab.Lab) (bytes []float64, err error) {
	for _, n := range spines(o.shape) {
		ports, err := l.PortBytes(n.ID)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, p := range ports {
			sum += float64(p.TxBytes)
		}
		bytes = append(bytes, sum)
	}
	return bytes, nil
}
