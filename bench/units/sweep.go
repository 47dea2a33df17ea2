package units

import (
	"context"
	"runtime"
	"sync"
)

// Unlimited is the rate, in Mbit/s, that stands for links faster than any host here.
const Unlimited = 100_000

// Axes are the settings of a sweep: all combinations.
type Axes struct {
	Rates              []float64 // Mbit/s of each link between switches
	Paths, Connections []int
}

// Whole and Quick are the sweeps of weft bench units.
var (
	Whole = Axes{[]float64{10, 100, 250, 1000, 2500, 10_000, Unlimited}, []int{2, 4, 16, 64}, []int{1, 4, 16, 64}}
	Quick = Axes{[]float64{100, 1000, 2500, 10_000}, []int{4}, []int{1, 16}}
)

// Settings are the combinations: by rate, then by paths, then by connections.
func (a Axes) Settings() (all []Setting) {
	for _, rate := range a.Rates {
		for _, p := range a.Paths {
			for _, c := range a.Connections {
				all = append(all, Setting{rate, p, c})
			}
		}
	}
	return all
}

// Sweep runs all settings, as many at a time as there are processors, and returns the results in
// the order of Settings. They depend on the axes and the seed alone. progress, if not nil, is
// called with the number of settings that are done, by one goroutine at a time. The first error
// ends the sweep.
func Sweep(ctx context.Context, a Axes, seed uint64, progress func(done, total int)) ([]Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	settings := a.Settings()
	results := make([]Result, len(settings))
	next := make(chan int)
	var work sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), len(settings)) {
		work.Go(func() {
			for i := range next {
				r, err := Run(ctx, settings[i], seed)
				if err != nil {
					cancel(err)
					continue
				}
				mu.Lock()
				results[i] = r
				if done++; progress != nil {
					progress(done, len(settings))
				}
				mu.Unlock()
			}
		})
	}
	for i := range settings {
		next <- i
	}
	close(next)
	work.Wait()
	return results, context.Cause(ctx)
}
