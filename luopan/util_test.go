package luopan

import (
	"testing"
	"time"
)

// tester is a Table, and what to it happens in a test.
type tester struct {
	*Table
	t testing.TB
}

func newTest(t testing.TB, c Config) *tester {
	t.Helper()
	if c.Seed == 0 {
		c.Seed = 1
	}
	table, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &tester{table, t}
}

// probes returns those that are due.
func (t *tester) probes(now time.Duration) (all []Probe) {
	t.Probes(now, func(p Probe) { all = append(all, p) })
	return all
}

// answer is one to p as its host would give it, but for what is measured.
func answer(p Probe, is Answer) Answer {
	is.Token, is.Path = p.Token, p.Path
	return is
}

// answerAll answers at once what is due.
func (t *tester) answerAll(now time.Duration, how func(Probe) Answer) {
	t.t.Helper()
	for _, p := range t.probes(now) {
		if !t.Answer(answer(p, how(p)), p.Host, now) {
			t.t.Fatalf("the answer to %+v was refused: %+v", p, t.Stats())
		}
	}
}

// takes chooses and checks.
func (t *tester) takes(dst uint32, paths []int, now time.Duration, want int) {
	t.t.Helper()
	if path, sampled := t.Choose(dst, dst, paths, now); path != want || !sampled {
		t.t.Fatalf("at %v path %d, sampled %v; want %d", now, path, sampled, want)
	}
}

// guesses chooses and checks that no sample decides.
func (t *tester) guesses(dst uint32, paths []int, now time.Duration) int {
	t.t.Helper()
	path, sampled := t.Choose(dst, dst, paths, now)
	if sampled {
		t.t.Fatalf("at %v path %d is sampled: %+v", now, path, t.Destinations())
	}
	return path
}

func queue(n uint8) Answer { return Answer{Queue: n, Meters: 1} }
