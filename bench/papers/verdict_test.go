package papers

import (
	"maps"
	"math"
	"testing"
)

// More seeds of an order that neither holds nor fails with most of them cannot make it a
// disagreement.
func TestJudge_moreSeedsNeverDisagreeByTheirNumber(t *testing.T) {
	bad := Within("", "", 1, 2, 1)
	for n := 1; n <= 40; n++ {
		for held := range n + 1 {
			got := Judge([]Row{bad, with(Order("", 2, 1), held, n)})
			if fails := n-held > held; (got == Disagrees) != fails {
				t.Errorf("%d of %d: %s", held, n, got)
			}
		}
	}
}

// with is a statement that holds with so many of several seeds.
func with(r Row, held, seeds int) Row {
	r.Held, r.Seeds, r.OK = held, seeds, 2*held > seeds
	return r
}

// ofSeeds is a figure by so many seeds.
func ofSeeds(r Row, seeds int) Row {
	r.Seeds = seeds
	return r
}

func TestJudge(t *testing.T) {
	good, bad := ofSeeds(Within("", "", 1, 1, 1), 5), Within("", "", 1, 2, 1)
	order, claim := Order("", 2, 1), Claim("", true)
	for _, c := range []struct {
		name string
		rows []Row
		want Verdict
	}{
		{"all", []Row{good, with(order, 5, 5), claim}, Agrees},
		{"without statements", []Row{good}, Agrees},
		{"figures of one seed", []Row{ofSeeds(good, 0)}, Undecided},
		{"figures of four seeds", []Row{ofSeeds(good, 4)}, Undecided},
		{"figures that are out, of one seed", []Row{bad}, Disagrees},
		{"all, but the order is not decided", []Row{good, with(order, 4, 5)}, Undecided},
		{"all, of one seed", []Row{ofSeeds(good, 0), order}, Undecided},
		{"an order alone with one seed", []Row{bad, order}, Undecided},
		{"with four of four", []Row{bad, with(order, 4, 4)}, Undecided},
		{"with three of four", []Row{bad, with(order, 3, 4)}, Undecided},
		{"with two of four", []Row{bad, with(order, 2, 4)}, Undecided},
		{"with one of four", []Row{bad, with(order, 1, 4)}, Disagrees},
		{"with five of five", []Row{bad, with(order, 5, 5)}, AgreesOrder},
		{"with four of five", []Row{bad, with(order, 4, 5)}, Undecided},
		{"with two of five", []Row{bad, with(order, 2, 5)}, Disagrees},
		{"with nine of ten", []Row{bad, with(order, 9, 10)}, AgreesOrder},
		{"with eight of ten", []Row{bad, with(order, 8, 10)}, Undecided},
		{"with four of ten", []Row{bad, with(order, 4, 10)}, Disagrees},
		{"one order of two", []Row{bad, with(order, 5, 5), with(order, 1, 5)}, Disagrees},
		{"one of two decided", []Row{bad, with(order, 5, 5), with(order, 4, 5)}, Undecided},
		{"figures but not the order", []Row{good, Order("", 1, 2)}, Disagrees},
		{"no order at all", []Row{good, bad}, Disagrees},
		{"a claim is no order", []Row{bad, with(claim, 5, 5)}, Disagrees},
		{"a claim that fails", []Row{good, with(order, 5, 5), Claim("", false)}, AgreesOrder},
		{"bounds alone never agree", []Row{AtMost("", "", 5, 1, 10), AtLeast("", "", 5, 9, 10)}, OnlyBounds},
		{"nor do our own", []Row{good.Own(), order.Own()}, OnlyBounds},
		{"nor do statements", []Row{claim}, OnlyBounds},
		{"nothing that is judged", []Row{Info("", "", 7)}, Disagrees},
		{"a bound alone that fails", []Row{AtMost("", "", 5, 9, 10)}, Disagrees},
		{"our own alone that fails", []Row{good.Own(), bad.Own()}, Disagrees},
		{"a bound that fails", []Row{good, AtMost("", "", 5, 9, 10)}, Disagrees},
		{"our own that fails", []Row{good, bad.Own()}, Disagrees},
		{"our own order is none", []Row{bad, with(order.Own(), 5, 5)}, Disagrees},
		{"what the paper has not", []Row{good, Info("", "", 7)}, Agrees},
	} {
		if got := Judge(c.rows); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTossed(t *testing.T) {
	for _, c := range []struct {
		held, n int
		want    float64
	}{{0, 5, 1}, {5, 5, 1. / 32}, {4, 5, 6. / 32}, {1, 1, .5}, {9, 10, 11. / 1024}, {8, 10, 56. / 1024}, {7, 8, 9. / 256}, {100, 100, math.Pow(2, -100)}} {
		if got := tossed(c.held, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d: %v, want %v", c.held, c.n, got, c.want)
		}
	}
	if tossed(EnoughSeeds, EnoughSeeds) > Chance || tossed(EnoughSeeds-1, EnoughSeeds-1) <= Chance {
		t.Errorf("%d seeds are not the fewest that can decide", EnoughSeeds)
	}
}

// Nothing but a value of the paper's, judged to both sides, counts.
func TestScore(t *testing.T) {
	rows := []Row{
		Within("", "", 1, 1, 1), Within("", "", 1, 2, 1), Between("", "", 1, 2, 1.5, 0), Ratio("", "", 2, 4, 2, 1),
		AtMost("", "", 5, 1, 10), AtLeast("", "", 1, 5, 10), Order("", 2, 1), Claim("", true), Sign("", true),
		Within("", "", 1, 1, 1).Own(), Info("", "", 1),
	}
	if got, want := ScoreOf(rows), (Score{3, 4}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := ByTolerance(rows), (map[float64]Score{0: {1, 1}, 1: {2, 3}}); !maps.Equal(got, want) {
		t.Errorf("by tolerance %v, want %v", got, want)
	}
}

func TestOrderAs_namesTies(t *testing.T) {
	r := OrderAs("goodput", []string{"RRB", "RB", "DRB", "ECMP"}, []float64{907, 901, 950, 671}, []float64{4, 3, 5, 1})
	if want := "goodput: DRB > RRB = RB > ECMP"; r.Label != want || r.Kind != KindOrder {
		t.Errorf("%+v, want %s", r, want)
	}
	if r := OrderAs("x", []string{"a", "b"}, []float64{1, 1}, []float64{1, 1}); r.Kind != KindClaim || r.Label != "x: a = b" {
		t.Errorf("where the paper has no order there is none to check: %+v", r)
	}
}
