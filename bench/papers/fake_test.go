package papers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// fake is an experiment whose figures come from a sweep, as real ones do.
func fake() Experiment {
	return Experiment{
		Name: "drb-f0", Source: "DRB §5.0, Fig. 0", Title: "What a < b & c shows",
		Setting: []Parameter{
			{Name: "window", Value: "64 KB", Chosen: true, Why: "256 KB contradicts the paper's round trip"},
			{Name: "links", Value: "1 Gbit/s"},
		},
		Run: func(ctx context.Context, o Options) (*Outcome, error) {
			mbit := make([]float64, 4)
			err := Each(ctx, o, len(mbit), func(i int) error {
				rng := rand.New(rand.NewPCG(o.Seed, uint64(i)))
				sum := 0.0
				for range 1000 {
					sum += rng.Float64()
				}
				mbit[i] = 900 - 200*float64(i) + sum/100
				return nil
			})
			if err != nil {
				return nil, err
			}
			const metric = "goodput, Mbit/s per host"
			paper := 905.0
			out := &Outcome{
				Rows: []Row{
					Within("DRB", metric, paper, mbit[0], 10),
					Within("RB", metric, 300, mbit[1], 10),
					Order("DRB > RB > RRB", mbit[:3]...),
					Claim("RRB is never idle", false),
					AtMost("ECMP", metric, 400, mbit[3], 10),
					Info("DRB twice", metric, 2*mbit[0]),
				},
				Because: "the fabric is not there",
				Charts: []Chart{
					{Title: "goodput of hosts", X: "Mbit/s", Y: "CDF", Lines: []Line{CDF("DRB", slices.Clone(mbit)), {Name: "RB", X: []float64{1}, Y: []float64{1}}}},
					{Title: "goodput", X: "Mbit/s", Bars: []Bar{{Name: "DRB", Ours: mbit[0], Paper: &paper}, {Name: "RB", Ours: mbit[1]}}},
				},
				PacketHops: 12_000_000,
			}
			if o.Quick {
				out.Settings = []Parameter{{Name: "hosts", Value: "16", Chosen: true, Why: "quick"}}
			}
			return out, nil
		},
	}
}

// failing is an experiment that cannot be run.
func failing(name string, err error) Experiment {
	return Experiment{Name: name, Run: func(context.Context, Options) (*Outcome, error) { return nil, fmt.Errorf("inside: %w", err) }}
}

// of is an experiment with these rows.
func of(rows ...Row) Experiment {
	return Experiment{Name: "x", Run: func(context.Context, Options) (*Outcome, error) { return &Outcome{Rows: rows}, nil }}
}
