package luopan

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Each path has a turn before one has the next, and turns in a row are spread: over groups
// of neighbours, as the paths by one switch are, at no time has one two more than another.
func TestStride_visitsAllAndSpreads(t *testing.T) {
	for n := 1; n <= 600; n++ {
		d := destination{paths: numbers(n), stride: stride(n)}
		seen := make([]bool, n)
		for range n {
			if p := d.takeTurn(); seen[p] {
				t.Fatalf("%d paths: %d has a second turn before others have one", n, p)
			} else {
				seen[p] = true
			}
		}
	}
	for _, k := range []int{2, 3, 4, 6, 8, 12, 16} {
		d := destination{paths: numbers(k * k), stride: stride(k * k)}
		by := make([]int, k)
		for i := range k * k {
			by[d.takeTurn()/k]++
			if most, least := slices.Max(by), slices.Min(by); most-least > 1 {
				t.Errorf("%d groups of %d: after %d turns they have %v", k, k, i+1, by)
				break
			}
		}
	}
}

// turning is a Table of three samples of ten paths, of so many units each.
func turning(t *testing.T, units ...uint8) (table *tester, paths []int, p []int) {
	table = newTest(t, Config{Turns: true, Samples: 3, Expiry: time.Second, QueueUnit: 1500})
	paths = numbers(10)
	table.Choose(8, 8, paths, 0)
	for i, probe := range table.probes(0) {
		p = append(p, probe.Path)
		table.Answer(answer(probe, queue(units[i])), 8, us)
	}
	return table, paths, p
}

func TestTurns_theLeastIsFirst(t *testing.T) {
	table, paths, p := turning(t, 8, 6, 9)
	for _, i := range []int{1, 0, 2} { // none is much worse than the first
		table.takes(8, paths, us, p[i])
		table.Sent(8, p[i], cell)
	}
	if next := table.guesses(8, paths, us); slices.Contains(p, next) {
		t.Errorf("path %d has a second turn", next)
	}
}

func TestTurns_whatIsMuchWorseLosesItsTurn(t *testing.T) {
	table, paths, p := turning(t, 6, 2, 5)
	table.takes(8, paths, us, p[1])
	table.takes(8, paths, us, p[2]) // 3 units worse; the other, 4, has lost its turn
	if next := table.guesses(8, paths, us); slices.Contains(p, next) {
		t.Errorf("path %d is %v", next, p)
	}
}

// A path that has less than is usual before it even with another flowcell takes another.
func TestTurns_whatIsNearlyEmptyGoesOn(t *testing.T) {
	table, paths, p := turning(t, 100, 3, 100)
	table.destinations[0].typical = 3*1500 + 2*cell - 1
	for range 2 {
		table.takes(8, paths, us, p[1])
		table.Sent(8, p[1], cell)
	}
	if next := table.guesses(8, paths, us); slices.Contains(p, next) {
		t.Errorf("path %d is %v", next, p)
	}
}

// Where nothing is congested all paths have as many flowcells, whenever rounds are and
// whichever answers come, late ones too.
func TestTurns_areEven(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		samples := 1 + int(seed%4)
		table := newTest(t, Config{Turns: true, Samples: samples, Expiry: 40 * us, Budget: maxBudget, Seed: seed + 1, Idle: time.Hour})
		paths := numbers(5 + int(seed%13))
		counts := make([]int, len(paths))
		var out []Probe
		now := time.Duration(0)
		for range 4000 {
			switch rng.IntN(4) {
			case 0:
				path, _ := table.Choose(8, 8, paths, now)
				table.Sent(8, path, cell)
				counts[path]++
			case 1:
				out = append(out, table.probes(now)...)
			case 2:
				rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
				for _, p := range out {
					table.Answer(answer(p, queue(0)), 8, now)
				}
				out = nil
			case 3:
				now += time.Duration(rng.IntN(20)) * us
			}
			if most, least := slices.Max(counts), slices.Min(counts); most-least > 2+2*samples {
				t.Fatalf("seed %d: %v", seed, counts)
			}
		}
	}
}

// Turns wait less than random paths and than filling, if paths are alike, and leave a slow
// path to itself.
func TestTurns_herd(t *testing.T) {
	for _, c := range []struct {
		name   string
		hosts  int
		load   float64
		rates  []float64
		random float64 // the mean wait is at most that of random paths times this
	}{
		{"16 paths, 32 hosts", 32, .8, slices.Repeat([]float64{1}, 16), .85},
		{"16 paths, 8 hosts", 8, .6, slices.Repeat([]float64{1}, 16), .8},
		{"16 paths, 2 hosts", 2, .6, slices.Repeat([]float64{1}, 16), .5},
		{"4 paths, one slow, 8 hosts", 8, .7, []float64{.25, 1, 1, 1}, .2},
		{"16 paths, one slow, 8 hosts", 8, .8, append([]float64{.25}, slices.Repeat([]float64{1}, 15)...), .5},
	} {
		const lasting = 30 * time.Millisecond
		h := herding{hosts: c.hosts, load: c.load, rates: c.rates, config: Config{Turns: true, Budget: 1e6}}
		turns := mean(h.waits(1, lasting))
		h.config.Turns = false
		fill := mean(h.waits(1, lasting))
		h.random = true
		random := mean(h.waits(1, lasting))
		t.Logf("%-30s random %5.0f µs, filling %5.0f, turns %5.0f", c.name, random, fill, turns)
		if turns > c.random*random {
			t.Errorf("%s: %.0f µs on average; random paths %.0f", c.name, turns, random)
		}
	}
}

// A path that others have chosen, and that has carried a flowcell, has had its turn.
func TestTurns_whatCarriesHasHadItsTurn(t *testing.T) {
	table, paths, p := turning(t, 0, 1, 1)
	table.Sent(8, p[0], cell-1)
	table.Sent(8, p[0], 1)
	table.takes(8, paths, us, p[1])
	table.takes(8, paths, us, p[2])
	if next := table.guesses(8, paths, us); next == p[0] {
		t.Errorf("path %d has a second turn", next)
	}
}

// A rack that nothing is sent to is asked no more, and at once when there is a flowcell.
func TestTurns_askWhoIsSentTo(t *testing.T) {
	table := newTest(t, Config{Turns: true, Idle: time.Second, Expiry: 40 * us})
	paths := numbers(10)
	table.Choose(8, 8, paths, 0)
	table.answerAll(0, func(Probe) Answer { return queue(0) })
	table.Sent(8, 0, 1)
	table.answerAll(50*us, func(Probe) Answer { return queue(0) }) // for the first flowcell, and the byte
	if table.Stats().Rounds != 2 {
		t.Fatalf("%+v", table.Stats())
	}
	for now := 100 * us; now < 1000*us; now += 10 * us {
		if all := table.probes(now); len(all) > 0 {
			t.Fatalf("at %v, when nothing is sent, %v", now, all)
		}
	}
	table.Choose(8, 8, paths, 1000*us)
	if all := table.probes(1000 * us); len(all) != 2 {
		t.Errorf("a flowcell, and %d probes", len(all))
	}
	if table.probes(3 * time.Second); table.Stats().Idle != 1 {
		t.Errorf("the rack is not forgotten: %+v", table.Stats())
	}
}
