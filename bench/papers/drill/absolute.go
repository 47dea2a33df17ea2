package drill

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

// The paper's one absolute time: the median with five links down at load 0.7, for a DRILL
// that learns of them at once.
const (
	fiveDown     = "DRILL, load 0.7, 5 links down"
	medianMillis = 3.49
)

// medianWithFive is its row, and how many hops it took.
func medianWithFive(ctx context.Context, o papers.Options, arrivals time.Duration) (papers.Row, uint64, error) {
	top, err := withFailed(5)(o)
	if err != nil {
		return papers.Row{}, 0, err
	}
	g := &grid{loads: []float64{.7}, schemes: []scheme{drill}}
	if err := g.run(ctx, o, trial{top: top, arrivals: arrivals}); err != nil {
		return papers.Row{}, 0, err
	}
	return papers.Within(fiveDown, "FCT median, ms", medianMillis, g.all[0].percentile(50)/1e3, ratioTolerance), g.hops(), nil
}

// What would have to be true for that time.
var (
	byDelay = papers.Decision{
		Parameter: "link delay", About: []string{fiveDown}, Ends: "from 0.5 µs to 20 km of fibre, more than a data centre has; the greatest, 170 km, is fitted",
		Values: []papers.DecisionValue{delays(10 * time.Microsecond), delays(100 * time.Microsecond), fitted(delays(850 * time.Microsecond))},
	}
	byOneSize = papers.Decision{
		Parameter: "one size of all flows", About: []string{fiveDown},
		Values: []papers.DecisionValue{fitted(as(sizes, twoMB))},
	}
)

func delays(d time.Duration) papers.DecisionValue {
	return papers.DecisionValue{Name: d.String(), Tune: func(c *sim.Config) { c.Delay = d }}
}
