package thesis

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"weft/bench/papers"
)

// rowsOf runs an experiment in the small form with replacements.
func rowsOf(t *testing.T, e papers.Experiment, replace ...map[string]string) []papers.Row {
	t.Helper()
	all := make(map[string]string)
	for _, r := range replace {
		maps.Copy(all, r)
	}
	out, err := e.Run(t.Context(), papers.Options{Quick: true, Seed: 1, Jobs: 1, Variant: &papers.Variant{Replace: all}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Rows
}

// passingWith are the rows that a value moves and that are OK with a mutant as well: such a
// value is one with which the row cannot fail. It says how many the value moves.
func passingWith(t *testing.T, e papers.Experiment, v papers.DecisionValue) (rows []string, moved int) {
	t.Helper()
	itself, with := rowsOf(t, e), rowsOf(t, e, v.Replace)
	var mutants [][]papers.Row
	for _, m := range e.Mutants {
		mutants = append(mutants, rowsOf(t, e, v.Replace, m.Replace))
	}
	for i, r := range itself {
		if r.OK || !with[i].OK {
			continue
		}
		moved++
		if slices.ContainsFunc(mutants, func(mutant []papers.Row) bool { return mutant[i].OK }) {
			rows = append(rows, r.Label)
		}
	}
	return rows, moved
}

// With the bump's times that bring the thesis' figures, what must not pass does not.
func TestTimesFollow_isNotVacuous(t *testing.T) {
	for _, e := range []papers.Experiment{figure510(), figure512()} {
		moving := 0
		for _, v := range timesFollow.Values {
			if rows, moved := passingWith(t, e, v); moved > 1 || len(rows) > 0 {
				t.Errorf("%s, %s: moves %d rows, of which %q pass with a mutant", e.Name, v.Name, moved, rows)
			} else if moved == 1 {
				moving++
			}
		}
		if moving < 2 {
			t.Errorf("%s: %d values move its row, want two at least", e.Name, moving)
		}
	}
}

// What was fitted is said where it was: these experiments have as many rows that score.
func TestFitted_scoresNothing(t *testing.T) {
	for _, c := range []struct {
		e       papers.Experiment
		of      int
		verdict papers.Verdict
	}{
		{table47(), 0, papers.OnlyFitted}, // all nine are one slope
		{table32(), 1, papers.Disagrees},  // memory for flows of 16 hosts
		{table22(), 2, papers.Disagrees},
	} {
		r, err := papers.Run(t.Context(), c.e, papers.Options{Quick: true, Seed: 1, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Score.Of != c.of || r.Verdict != c.verdict {
			t.Errorf("%s: %s, %s; want %d and %s", c.e.Name, r.Score, r.Verdict, c.of, c.verdict)
		}
	}
}

// Mappings are told apart by what they are like: those at one end have fewer receivers, or
// less that is local, than those at the other, and the order is one.
func TestDrawnMappings(t *testing.T) {
	for _, p := range []pattern{randomBijection, randomAny, staggered(.2, .3, true), interPodIncoming, sameIDOutgoing} {
		tree, f, err := fabricOf(fatTree(4))
		if err != nil {
			t.Fatal(err)
		}
		var like []likeness
		for n := range 40 {
			to, err := p.make(tree, derive(1, n))
			if err != nil {
				t.Fatal(err)
			}
			like = append(like, likenessOf(f, to))
		}
		var at []likeness
		for _, percent := range []float64{0, 10, 25, 50, 75, 90, 100} {
			at = append(at, like[atQuantile(like, percent)])
		}
		if !slices.IsSortedFunc(at, likeness.compare) || at[0].compare(at[len(at)-1]) >= 0 {
			t.Errorf("%s: %+v", p.name, at)
		}
		if least, most := slices.MinFunc(like, likeness.compare), slices.MaxFunc(like, likeness.compare); at[0] != least || at[len(at)-1] != most {
			t.Errorf("%s: from %+v to %+v, want %+v and %+v", p.name, at[0], at[len(at)-1], least, most)
		}
	}
}

// Where the times of Fig. 5.11 are recorded makes a difference that the row could fail by, and
// so do the hosts' rates. With 2.5 Gbit/s, which are no value, it could not.
func TestFigure511_isNotVacuous(t *testing.T) {
	e := figure511()
	for _, d := range e.Decisions {
		for _, v := range d.Values {
			if rows, _ := passingWith(t, e, v); len(rows) > 0 {
				t.Errorf("%s, %s: %q pass with a mutant", d.Parameter, v.Name, rows)
			}
		}
	}
	slow := papers.DecisionValue{Name: "2.5 Gbit/s", Replace: map[string]string{hostRate: "2500"}}
	if rows, moved := passingWith(t, e, slow); len(rows) != 1 || moved != 1 {
		t.Errorf("hosts of 2.5 Gbit/s: %d rows are moved, of which %q pass with a mutant", moved, rows)
	}
}

// No number of core switches joins more ports than half of those of a lower switch.
func TestFolded(t *testing.T) {
	for _, c := range []struct{ ports, upper, want int }{{28, 0, 28 * 14}, {28, 16, 28 * 14}, {32, 24, 32 * 16}, {64, 16, 64 * 16}, {96, 4, 96 * 4}} {
		if got := folded(c.ports, c.upper); got != c.want {
			t.Errorf("%d switches above of %d ports: %d, want %d", c.upper, c.ports, got, c.want)
		}
	}
}

// What sameIDMappings says of all mappings is so of as many as a run has.
func TestSameIDMappings(t *testing.T) {
	for _, m := range methods {
		if m.name != "two-level table" {
			continue
		}
		tree, f, err := fabricOf(m.fabric)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			to, err := sameIDOutgoing.make(tree, derive(1, n))
			if err != nil {
				t.Fatal(err)
			}
			if part := m.part(f, to, 1); part < .5-1e-9 || part > .5+1e-9 {
				t.Fatalf("%v: %v", to, part)
			}
		}
		return
	}
	t.Fatal("there is no two-level table")
}

// Click's table has 127 buckets at first, and more than half as many as entries ever after.
func TestBuckets(t *testing.T) {
	for entries, want := range map[int]int{0: 127, 254: 127, 255: 255, 27648: 16383} {
		if got := buckets(entries); got != want {
			t.Errorf("%d entries: %d, want %d", entries, got, want)
		}
	}
}

// Where receivers of neighbours are near, and where QCN's queue is recorded seldom, what must
// not pass does not.
func TestMoved_isNotVacuous(t *testing.T) {
	mappings := table31()
	mappings.Mutants = mappings.Mutants[1:] // the other one is of the scheduler
	for _, c := range []struct {
		e papers.Experiment
		v papers.DecisionValue
	}{{mappings, neighbours.Values[0]}, {figure517(), qcnRecorded.Values[1]}} {
		if rows, _ := passingWith(t, c.e, c.v); len(rows) > 0 {
			t.Errorf("%s, %s: %q pass with a mutant", c.e.Name, c.v.Name, rows)
		}
	}
}

// A start by two times of one flow a host gives these two times.
func TestStartBy(t *testing.T) {
	visits := []float64{4_000, 0, 30_000, 0, 0, 110_000}
	for _, v := range estimatorStartByFirst.Values {
		o := papers.Options{Variant: &papers.Variant{Replace: v.Replace}}
		var a, b int
		if _, err := fmt.Sscan(v.Replace["start by"], &a, &b); err != nil {
			t.Fatal(err)
		}
		start := startBy(o, visits)
		got, want := (start+visits[a])/(start+visits[b]), table45Rows[a].ms/table45Rows[b].ms
		if got < want-1e-9 || got > want+1e-9 || table45Rows[a].flows != fatTreeHosts(table45Rows[a].k) || table45Rows[b].flows != fatTreeHosts(table45Rows[b].k) {
			t.Errorf("%s: a start of %v has them as %v, want %v", v.Name, start, got, want)
		}
	}
	if s := startBy(papers.Options{}, visits); s != 0 {
		t.Errorf("by itself %v, want none", s)
	}
}

// Times of an iteration that has moves and two more give two.
func TestIterationCost(t *testing.T) {
	rows := []row46{{ms: [3]float64{0, 5, 5 + 5*.1*(2+6)}}, {ms: [3]float64{0, 7, 7 + 5*.1*(2+12)}}}
	visits := [][len(table46Iterations)]float64{{0, 1000, 1000 + 5000*6}, {0, 9, 9 + 5000*12}}
	if c := iterationCost(rows, visits); c < 2-1e-9 || c > 2+1e-9 {
		t.Errorf("%v, want 2", c)
	}
}
