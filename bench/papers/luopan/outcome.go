package luopan

import (
	"context"
	"fmt"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/stats"
)

// times are flow completion times in µs.
type times struct {
	all, mice, medium, elephants []float64 // of the workload
	probes                       []float64
	result                       *sim.Result
	cutOff                       bool // flows were still under way at the end
}

func (t *times) took(f sim.FlowEnd) {
	us := float64(f.FCT.Nanoseconds()) / 1e3
	switch {
	case f.Class == probe:
		t.probes = append(t.probes, us)
		return
	case f.Class != background:
		return
	case f.Bytes <= mouse:
		t.mice = append(t.mice, us)
	case f.Bytes <= elephant:
		t.medium = append(t.medium, us)
	default:
		t.elephants = append(t.elephants, us)
	}
	t.all = append(t.all, us)
}

// play runs trials. All have the same flows where they differ in the scheme only.
// on, if not nil, is told of every flow of a trial.
func play(ctx context.Context, o papers.Options, trials []trial, on func(trial int, f sim.FlowEnd)) ([]*times, error) {
	config := func(i int, w *times) (sim.Config, error) {
		t := trials[i]
		return t.config(o.Seed, func(f sim.FlowEnd) {
			if f.Start >= t.arrivals/warm {
				w.took(f)
				if on != nil {
					on(i, f)
				}
			}
		})
	}
	return papers.Play(ctx, o, len(trials), config, func(i int, w *times, r *sim.Result, cutOff bool) error {
		w.result, w.cutOff = r, cutOff
		if len(w.all) == 0 {
			return fmt.Errorf("no flow of %s at load %v has ended", trials[i].scheme, trials[i].load)
		}
		return nil
	})
}

func hops(all []*times) (n uint64) {
	for _, t := range all {
		n += t.result.PacketHops
	}
	return n
}

// measure is a figure of a run's flows, in µs.
type measure struct {
	name string
	of   func(*times) float64
}

var (
	miceTail     = measure{"mice p99", func(t *times) float64 { return stats.Percentile(t.mice, 99) }}
	probeTail    = measure{"2 KB probes p99.9", func(t *times) float64 { return stats.Percentile(t.probes, 99.9) }}
	mediumMean   = measure{"medium flows mean", func(t *times) float64 { return mean(t.medium) }}
	elephantMean = measure{"elephants mean", func(t *times) float64 { return mean(t.elephants) }}
	overallMean  = measure{"all flows mean", func(t *times) float64 { return mean(t.all) }}
)

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

// change is by how many percent a differs from b. Where a quick run has no such
// flows there is no difference.
func (m measure) change(a, b *times) float64 {
	if m.of(b) == 0 {
		return 0
	}
	return papers.Change(m.of(b), m.of(a))
}

// flowsOf says how many flows figures rest on, the least of all runs.
func flowsOf(all []*times) papers.Parameter {
	least, cutOff := [4]int{1 << 30, 1 << 30, 1 << 30, 1 << 30}, 0
	for _, t := range all {
		if t.cutOff {
			cutOff++
		}
		for i, n := range [4]int{len(t.mice), len(t.medium), len(t.elephants), len(t.probes)} {
			least[i] = min(least[i], n)
		}
	}
	return parameter("flows counted", fmt.Sprintf("at least %d mice, %d medium, %d elephants, %d probes a run; %d of %d runs ended before all flows had",
		least[0], least[1], least[2], least[3], cutOff, len(all)))
}

// bounds are of a change in percent.
type bounds struct{ low, high float64 }

// upToTolerance is how far a change may be from the paper's largest one, which is
// the extreme of a curve; ours is of a shorter run.
const upToTolerance = papers.Plotted

// upTo compares the largest gain with the paper's "up to".
func upTo(label, metric string, paper float64, changes []float64) papers.Row {
	best := changes[0]
	for _, c := range changes {
		best = min(best, c)
	}
	r := papers.Within(label, metric, paper, best, upToTolerance)
	r.Note = "the paper: up to; ours: the largest of all points; OK is within half of the paper's change"
	return r
}

// between compares a change with the paper's range.
func between(label, metric string, b bounds, ours float64) papers.Row {
	return papers.Between(label, metric, b.low, b.high, ours, papers.Stated)
}

// meansDiffer is what most experiments have in common.
const meansDiffer = "tails of mice gain as in the paper, means of larger flows by a few percent only. One cause is the age of samples: where they take no time (switch-luopan in f11, f13, f14, f16) the mean at 12 pods is 8 % below random's, not equal to it, 14 % below presto's, not 8, and with DCTCP 16 %, not 5; the rest we have not found. None of these brings it: windows of 64 KB to 1 MB, an initial window of 1, recovery without SACK, timeouts of 10 and 200 ms, a reordering buffer that knows what is lost, one that waits for as long as it takes, or none, twice and four times the load, four times as long a run (8 pods, load 0.6)"

// because is said of full runs only: of others the frame says that they are small.
func because(o papers.Options, reason string) string { return pick(o, reason, "") }
