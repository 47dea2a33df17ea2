package liveness

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// The window against a list of all that happened.
func TestWindow_likeAList(t *testing.T) {
	type one struct {
		piece int32
		n     int
		lost  bool
	}
	rng := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		var w window
		var all []one
		piece := int32(0)
		for range 100 {
			if rng.IntN(3) == 0 {
				piece += int32(rng.IntN(windows + windows/2))
			}
			e := one{piece, rng.IntN(5), rng.IntN(3) == 0}
			all = append(all, e)
			if e.lost {
				w.addLost(piece, e.n)
			} else {
				w.addSent(piece, e.n)
			}
			sent, lost := 0, 0
			for _, e := range all {
				switch {
				case e.piece <= piece-windows:
				case e.lost:
					lost += e.n
				default:
					sent += e.n
				}
			}
			if s, l := w.sums(); s != max(sent, lost) || l != lost {
				t.Fatalf("%d of %d, want %d of %d", l, s, lost, sent)
			}
		}
	}
	var w window
	for i, c := range []struct{ sent, lost int }{{10, 0}, {11, 0}, {12, 5}, {13, 0}, {14, 6}, {15, 1}} {
		w.addSent(int32(i), c.sent)
		w.addLost(int32(i), c.lost)
	}
	if s, l, n := w.since(); s != 11+12+13+14 || l != 12 || n != 3 {
		t.Errorf("%d lost of %d in %d pieces", l, s, n)
	}
	w.addSent(5, math.MaxInt)
	if s, _ := w.sums(); s < math.MaxUint16 {
		t.Errorf("counter went round: %d", s)
	}
}

// Chernoff's bound is a bound: of the binomial tail.
func TestStandsOut_boundsTheTail(t *testing.T) {
	for _, n := range []int{1, 5, 20, 64} {
		for _, q := range []float64{0.02, 0.1, 0.5} {
			tail := 0.0
			for k := n; k >= 0; k-- {
				c, _ := math.Lgamma(float64(n + 1))
				a, _ := math.Lgamma(float64(k + 1))
				b, _ := math.Lgamma(float64(n - k + 1))
				tail += math.Exp(c - a - b + float64(k)*math.Log(q) + float64(n-k)*math.Log(1-q))
				if bound := math.Exp(-standsOut(k, n, q)); bound < tail-1e-9 {
					t.Errorf("%d of %d at %v: bound %v below %v", k, n, q, bound, tail)
				}
			}
		}
	}
	if d := differs(10, 10, 0, 30); d < doubt {
		t.Errorf("10 of 10 against 0 of 30: %v", d)
	}
	if d := differs(3, 10, 9, 30); d > 1e-9 {
		t.Errorf("3 of 10 against 9 of 30: %v", d)
	}
}

func TestBudget_boundsRate(t *testing.T) {
	var b budget
	b.init(1000)
	calm, hasty := 0, 0
	for now := time.Duration(0); now < 10*time.Second; now += 100 * time.Microsecond {
		for b.urgent(2, now) {
			hasty += 2
		}
		for b.steady(now) {
			calm++
		}
	}
	if n := calm + hasty; n < 9_990 || n > 10_030 || calm < 5_500 {
		t.Errorf("%d and %d in 10 s", calm, hasty)
	}
	b.init(-1)
	if b.steady(time.Hour) || b.urgent(1, time.Hour) || !b.none() {
		t.Error("something of nothing")
	}
}
