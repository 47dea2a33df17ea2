package fluid

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/hedera"
)

// list is a Source of given flows; each one that ends begins another one half a
// second later, as long as there are any.
type list struct {
	flows, then []workload.Flow
	ended       []time.Duration // by Job
}

func (l *list) Next() (workload.Flow, bool) {
	if len(l.flows) == 0 {
		return workload.Flow{}, false
	}
	f := l.flows[0]
	l.flows = l.flows[1:]
	return f, true
}

func (l *list) Done(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
	l.ended[f.Job] = at
	if len(l.then) > 0 {
		next := l.then[0]
		l.then = l.then[1:]
		next.Start = at + time.Second/2
		begin(next)
	}
}

// slowly is the obvious simulation: at every event all rates anew.
func slowly(f *Fabric, l *list, path func(workload.Flow) int) {
	type running struct {
		workload.Flow
		left float64
	}
	capacity := make([]int64, len(f.capacity))
	for i, c := range f.capacity {
		capacity[i] = int64(c)
	}
	waiting := l.flows
	var under []*running
	now := 0.0 // seconds
	for len(waiting)+len(under) > 0 {
		routes := make([][]int32, len(under))
		for i, u := range under {
			r := f.Route(u.Src, u.Dst, path(u.Flow))
			routes[i] = slices.Clone(r.list())
		}
		rates := maxMin(capacity, routes)
		next, which := math.Inf(1), none
		for i, u := range under {
			if at := now + u.left*8/1e6/rates[i]; at < next {
				next, which = at, i
			}
		}
		if len(waiting) > 0 && waiting[0].Start.Seconds() <= next {
			next, which = waiting[0].Start.Seconds(), none
		}
		for i, u := range under {
			u.left -= rates[i] * 1e6 / 8 * (next - now)
		}
		now = next
		if which == none {
			under = append(under, &running{waiting[0], float64(waiting[0].Bytes)})
			waiting = waiting[1:]
			continue
		}
		done := under[which]
		under = slices.Delete(under, which, which+1)
		l.Done(done.Flow, time.Duration(now*1e9), func(f workload.Flow) {
			waiting = append(waiting, f)
			slices.SortStableFunc(waiting, func(a, b workload.Flow) int { return int(a.Start - b.Start) })
		})
	}
}

func TestRun_isTheObviousSimulation(t *testing.T) {
	f := fabricOf(t, kinds[0])
	for seed := range uint64(20) {
		make := func() *list {
			rng := rand.New(rand.NewPCG(seed, 8))
			l := &list{ended: make([]time.Duration, 40)}
			for i, p := range randomPairs(rng, 16, 40) {
				l.flows = append(l.flows, workload.Flow{
					Start: time.Duration(rng.Int64N(int64(4 * time.Second))), Src: p.Src, Dst: p.Dst,
					Bytes: 1e6 + rng.Int64N(2e8), Job: uint32(i)})
			}
			slices.SortFunc(l.flows, func(a, b workload.Flow) int { return int(a.Start - b.Start) })
			l.flows, l.then = l.flows[:30], l.flows[30:]
			return l
		}
		h := &Hash{Fabric: f, Key: ByDestination, Seed: seed}
		want, got := make(), make()
		slowly(f, want, func(w workload.Flow) int { return h.Path(Pair{w.Src, w.Dst}, 0) })
		r, err := Run(Config{Fabric: f, Workload: got, Scheduler: ECMP(h), Duration: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.ended {
			if d := want.ended[i] - got.ended[i]; d < -time.Microsecond || d > time.Microsecond {
				t.Fatalf("seed %d: flow %d ends at %v, want %v", seed, i, got.ended[i], want.ended[i])
			}
		}
		if r.Flows != 40 || r.End != slices.Max(got.ended) {
			t.Errorf("seed %d: %d flows ended, the last at %v; want 40, %v", seed, r.Flows, r.End, slices.Max(got.ended))
		}
	}
}

// forever has every host send to another one without end.
func forever(t *testing.T, by int) workload.Source {
	t.Helper()
	top := parse(t, kinds[0])
	to, err := workload.Stride(top, by)
	if err != nil {
		t.Fatal(err)
	}
	s, err := workload.NewClosed(workload.ClosedConfig{Senders: workload.Hosts(top), To: workload.To(to)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Schedulers hash first, and from their first round on a stride has all it asks.
func TestRun_schedulersMendAStride(t *testing.T) {
	f := fabricOf(t, kinds[0])
	h := &Hash{Fabric: f, Key: ByPod, Seed: 1} // four flows at each core's link
	for name, scheduler := range map[string]func() Scheduler{
		"first fit": func() Scheduler { return NewScheduled(h, hedera.NewGlobalFirstFit(f)) },
		"annealing": func() Scheduler {
			a, err := hedera.NewAnnealing(f, hedera.AnnealingConfig{Iterations: 5000, C: .5, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			return NewScheduled(h, hedera.NewAnnealed(a))
		},
	} {
		for _, c := range []struct {
			warmup time.Duration
			want   float64
		}{{2 * time.Second, 16000}, {0, (4000 + 16000) / 2}} {
			r, err := Run(Config{Fabric: f, Workload: forever(t, 8), Scheduler: scheduler(),
				Period: 2 * time.Second, First: 2 * time.Second, Duration: 4 * time.Second, Warmup: c.warmup})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.Mbit-c.want) > 1 {
				t.Errorf("%s, from %v on: %v Mbit/s, want %v", name, c.warmup, r.Mbit, c.want)
			}
		}
	}
}

// Spread over all paths of a fat-tree, flows get what a switch would give them
// that never blocks; and the same seed gives the same run.
func TestRun_spreadIsAsGoodAsNonBlocking(t *testing.T) {
	top := parse(t, kinds[0])
	spread, err := NewSpread(top)
	if err != nil {
		t.Fatal(err)
	}
	run := func(f *Fabric, s Scheduler) Result {
		to, err := workload.Uniform(top, workload.Anywhere)
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.NewPoisson(workload.PoissonConfig{Senders: workload.Hosts(top), To: to,
			Sizes: workload.Fixed(1e7), PerSecond: 120, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(Config{Fabric: f, Workload: w, Scheduler: s, Duration: 10 * time.Second, Warmup: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return *r
	}
	one := run(spread, Static(func(*Transfer) int { return 0 }))
	best := run(fabricOf(t, kinds[0]), NonBlocking)
	if one.Flows < 500 || one.Flows != best.Flows || one.Mean != best.Mean || math.Abs(one.Mbit-best.Mbit) > 1e-6*best.Mbit {
		t.Errorf("spread %+v, non-blocking %+v", one, best)
	}
	if again := run(spread, Static(func(*Transfer) int { return 0 })); again != one {
		t.Errorf("the second time %+v, the first %+v", again, one)
	}
}

func TestRun_refusesWhatMakesNoSense(t *testing.T) {
	f := fabricOf(t, kinds[0])
	good := Config{Fabric: f, Workload: &list{}, Scheduler: NonBlocking, Duration: time.Second}
	for name, spoil := range map[string]func(*Config){
		"no fabric":    func(c *Config) { c.Fabric = nil },
		"no workload":  func(c *Config) { c.Workload = nil },
		"no scheduler": func(c *Config) { c.Scheduler = nil },
		"no time":      func(c *Config) { c.Duration = 0 },
		"all warm-up":  func(c *Config) { c.Warmup = time.Second },
		"period":       func(c *Config) { c.Period = -1 },
	} {
		c := good
		spoil(&c)
		if _, err := Run(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Run(good); err != nil {
		t.Error(err)
	}
}
