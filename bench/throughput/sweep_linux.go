package throughput

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Regime is what a sweep varies. Connections are those of a cell.
type Regime struct {
	SpineRate   float64 `json:"spine_rate_mbit"` // 0: none
	Paths       int     `json:"paths"`
	Loss        float64 `json:"loss"`    // part of the packets
	SkewMs      float64 `json:"skew_ms"` // of one path
	Connections int     `json:"connections"`
}

// Cell is what the cases reached in a Regime, by their names.
type Cell struct {
	Regime
	Gbps             map[string]float64 `json:"gbps"`
	GbpsPerCore      map[string]float64 `json:"gbps_per_core"`
	RetransmitsPerGB map[string]float64 `json:"retransmits_per_gb"`
	// OfBest is the rate of SweepCases' first in percent of that of the best other; 0 if one of
	// the two was not measured. Best is the other's name.
	OfBest float64 `json:"of_best_percent"`
	Best   string  `json:"best"`
}

// SweepCases are weft host by its defaults, and the fixed choices that it is compared with.
var SweepCases = []string{"host/auto", "gateway/presto", "offload/presto", "offload/drb", reference}

// SweepConnections are how many carry the bytes in a sweep's cells.
var SweepConnections = []int{1, 16, 64}

// Trouble is what is wrong with the paths of a Regime.
type Trouble struct {
	Paths  int
	Loss   float64
	SkewMs float64
}

// SweepRates and Troubles are what a sweep combines: each trouble by itself.
var (
	SweepRates = []float64{250, 1000, 0}
	Troubles   = []Trouble{{4, 0, 0}, {4, 0.001, 0}, {4, 0.01, 0}, {4, 0, 0.5}, {4, 0, 2}, {16, 0, 0}}
)

// Sweep measures the cases of o under all rates and troubles, with each number of connections. Each
// rate and trouble has a lab of its own, one after the other. What fails is told by o.Note, and is
// missing in its cells. Cells are in the order of rates, then troubles, then connections.
func Sweep(ctx context.Context, o Options, rates []float64, troubles []Trouble) (all []Cell, err error) {
	labs, done := len(rates)*len(troubles), 0
	tell := o.Progress
	for _, rate := range rates {
		for _, t := range troubles {
			o.SpineRate, o.Paths, o.Loss = rate, t.Paths, t.Loss
			o.Skew = time.Duration(t.SkewMs * float64(time.Millisecond))
			if tell != nil {
				o.Progress = func(i, total int) { tell(done*total+i, labs*total) }
			}
			results, err := Run(ctx, o)
			if ctx.Err() != nil {
				return all, ctx.Err()
			}
			if err != nil && len(results) == 0 {
				return all, err
			}
			if err != nil && o.Note != nil {
				o.Note(err.Error())
			}
			for _, n := range o.Connections {
				all = append(all, cellOf(Regime{rate, t.Paths, t.Loss, t.SkewMs, n}, results))
			}
			done++
		}
	}
	return all, nil
}

// cellOf makes a cell of the results that have its number of connections.
func cellOf(r Regime, results []Result) Cell {
	c := Cell{Regime: r, Gbps: make(map[string]float64), GbpsPerCore: make(map[string]float64), RetransmitsPerGB: make(map[string]float64)}
	for _, r := range results {
		if r.Connections == c.Connections {
			c.Gbps[r.Case], c.GbpsPerCore[r.Case], c.RetransmitsPerGB[r.Case] = r.Gbps, r.GbpsPerCore, r.RetransmitsPerGB
		}
	}
	c.Best = slices.MaxFunc(SweepCases[1:], func(a, b string) int { return cmp.Compare(c.Gbps[a], c.Gbps[b]) })
	c.OfBest = 100 * ratio(c.Gbps[SweepCases[0]], c.Gbps[c.Best])
	return c
}
