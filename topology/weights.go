package topology

import "math"

// Bounds of weights. Other rates are rounded to the nearest 1/maxWeight of the
// fastest.
const (
	maxWeight = 32
	// MaxWeighted is the greatest length of a list of Weighted.
	MaxWeighted = 4096
)

// Weighted returns the live paths, ascending, each as often as it weighs. drb's rules
// take it as their live paths. It equals Live if all weigh the same, and is no longer
// than MaxWeighted. It must not be changed.
func (s PathSet) Weighted() []int { return repeat(s.Live, s.Weights) }

// repeat returns list with each element as often as it weighs.
func repeat(list, weights []int) []int {
	if weights == nil {
		return list
	}
	var all []int
	for i, n := range list {
		for range weights[i] {
			all = append(all, n)
		}
	}
	return all
}

// capacities returns the rates of the slowest links between switches of the
// live paths, parallel to Live, in Mbit/s; 0 where no rate is known.
func (s PathSet) capacities() []float64 {
	list := make([]float64, len(s.Live))
	if s.rack != nil {
		for i, n := range s.Live {
			list[i] = s.rack.rates[n]
		}
		return list
	}
	for i, n := range s.Live {
		up, down := s.Halves(n)
		for _, half := range [2][]LinkID{up, down} {
			for _, l := range half {
				list[i] = slower(list[i], s.t.Rate(l))
			}
		}
	}
	return list
}

// slower returns the lesser of two rates of which 0 is unknown.
func slower(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// weigh returns whole numbers from 1 to maxWeight that are in proportion to
// rates, as nearly as the bounds allow, in lowest terms; nil if they are equal.
func weigh(rates []float64) []int { return weighUpTo(maxWeight, rates) }

func weighUpTo(most int, rates []float64) []int {
	fastest := 0.0
	equal := true
	for _, r := range rates {
		fastest = max(fastest, r)
		equal = equal && r == rates[0]
	}
	if equal {
		return nil
	}
	weights := make([]int, len(rates))
	// The first scale at which all are exact, or else the largest that fits;
	// the least makes all alike, of which a pair has no more than MaxPaths.
	for scale := 1; scale <= most; scale++ {
		if total, exact := scaled(weights, rates, fastest, scale); exact && total <= MaxWeighted {
			return lowest(weights)
		}
	}
	for scale := most; scale > 1; scale-- {
		if total, _ := scaled(weights, rates, fastest, scale); total <= MaxWeighted {
			return lowest(weights)
		}
	}
	return nil
}

// scaled sets the weights with that of the fastest at scale. exact reports
// whether they are in proportion.
func scaled(weights []int, rates []float64, fastest float64, scale int) (total int, exact bool) {
	exact = true
	for i, r := range rates {
		share := r / fastest * float64(scale)
		weights[i] = max(1, int(math.Round(share)))
		total += weights[i]
		exact = exact && math.Abs(share-float64(weights[i])) < 1e-9*float64(scale)
	}
	return total, exact
}

// lowest divides weights by what divides all of them; nil if they are equal.
func lowest(weights []int) []int {
	d, equal := 0, true
	for _, w := range weights {
		d = gcd(d, w)
		equal = equal && w == weights[0]
	}
	if equal {
		return nil
	}
	for i := range weights {
		weights[i] /= d
	}
	return weights
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
