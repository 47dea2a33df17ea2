package topology

import (
	"math"
	"slices"
)

// sum stands for a set of racks, each with a capacity factor. It is the sum of their
// hashes, in two independent lanes of 64 bits. Different sets have equal sums with a
// probability of 2^-128. The hashes are not secret: rates come from the operator, who is
// no adversary.
type sum [2]uint64

func (a sum) plus(b sum) sum  { return sum{a[0] + b[0], a[1] + b[1]} }
func (a sum) minus(b sum) sum { return sum{a[0] - b[0], a[1] - b[1]} }

// with returns the sum of a set's members with another factor. It is linear, so
// that racks with the same factor count together.
func (a sum) with(factor float64) sum {
	h := hashed(math.Float64bits(factor))
	return sum{a[0] * (h[0] | 1), a[1] * (h[1] | 1)}
}

// hashed is splitmix64's output function at two seeds (Steele et al., OOPSLA
// 2014).
func hashed(x uint64) sum {
	mix := func(z uint64) uint64 {
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	return sum{mix(x + 0x9e3779b97f4a7c15), mix(x ^ 0x6a09e667f3bcc908)}
}

// class is the racks below an aggregation switch whose links to it are live and
// of one rate.
type class struct {
	rate  float64
	racks sum
}

// Quiver is DRILL's labelled multigraph (§3.4.1), made once for all pairs. It does not
// hold the labels, whose number is pairs times links. It holds hashes of the two sets
// whose product a link's labels are.
//
// With P pods of E edge and A aggregation switches, and C cores in each group, it takes
// O(P·A·(E+C)) to make. The groups of a pair then take O(A·C) where links are down, after
// O(P·A·C) for the first pair of a pod. Where rates are uneven they take O(P·A·C) times
// the number of distinct rates at a switch. DRILL's own construction takes
// O(racks²·switches²) for all pairs.
//
// The capacity factor 0 stands for a link of unknown rate. A Quiver is not safe for
// concurrent use.
type Quiver struct {
	t      *Topology
	uneven bool
	// By pod and group: the racks that an aggregation switch has below.
	racks   []sum
	classes [][]class
	// By group and core: the racks that a core has below.
	under []sum
	// Made when asked for: by pod and group, the racks that an aggregation switch
	// reaches; by pod, the sources of the links down to it from all cores.
	reached map[int]sum
	downs   map[int][]sum
	// Where rates are uneven, those of the links of cores, in the order of the
	// links' numbers; dead if they are.
	rates []float64
	seen  [2][]float64 // scratch
}

const dead = -1

// Quiver returns the Quiver of t.
func (t *Topology) Quiver() *Quiver {
	if t.view != nil {
		return &Quiver{t: t}
	}
	q := &Quiver{
		t:       t,
		uneven:  t.rates != nil && t.rates.uneven,
		racks:   make([]sum, t.pods*t.aggs),
		classes: make([][]class, t.pods*t.aggs),
		under:   make([]sum, t.aggs*t.cores),
		reached: make(map[int]sum),
		downs:   make(map[int][]sum),
	}
	for pod := range t.pods {
		for e := range t.edges {
			rack := hashed(uint64(pod*t.edges + e))
			for g := range t.aggs {
				if l := t.edgeLink(pod, e, g); t.Live(l) {
					q.addRack(pod*t.aggs+g, rack, t.Rate(l))
				}
			}
		}
		for i := range t.aggs * t.cores {
			if t.Live(t.coreLink(pod, 0, 0) + LinkID(i)) {
				q.under[i] = q.under[i].plus(q.below(pod, i/t.cores))
			}
		}
	}
	if q.uneven {
		q.rates = make([]float64, t.pods*t.aggs*t.cores)
		for i := range q.rates {
			l := t.coreLink(0, 0, 0) + LinkID(i)
			if q.rates[i] = t.Rate(l); !t.Live(l) {
				q.rates[i] = dead
			}
		}
	}
	return q
}

// coreRates returns those of an aggregation switch's links to its cores.
func (q *Quiver) coreRates(pod, g int) []float64 {
	i := (pod*q.t.aggs + g) * q.t.cores
	return q.rates[i : i+q.t.cores]
}

func (q *Quiver) addRack(agg int, rack sum, rate float64) {
	q.racks[agg] = q.racks[agg].plus(rack)
	if !q.uneven {
		return
	}
	for i := range q.classes[agg] {
		if c := &q.classes[agg][i]; c.rate == rate {
			c.racks = c.racks.plus(rack)
			return
		}
	}
	q.classes[agg] = append(q.classes[agg], class{rate, rack})
}

// below returns the racks below an aggregation switch.
func (q *Quiver) below(pod, g int) sum { return q.racks[pod*q.t.aggs+g] }

// reach returns the racks that an aggregation switch reaches: the destinations
// of the links from the racks below, at whose sources every capacity factor is
// infinite. A rack itself counts, too: it does so at all its links.
func (q *Quiver) reach(pod, g int) sum {
	key := pod*q.t.aggs + g
	r, ok := q.reached[key]
	if !ok {
		r = q.below(pod, g)
		for to := range q.t.pods {
			if to != pod && q.t.meet(pod, to, g) {
				r = r.plus(q.below(to, g))
			}
		}
		q.reached[key] = r
	}
	return r
}

// meet reports whether the g-th aggregation switches of two pods have a core in
// common; in VL2 a virtual spine.
func (t *Topology) meet(a, b, g int) bool {
	for c := range t.cores {
		if t.Live(t.coreLink(a, g, c)) && t.Live(t.coreLink(b, g, c)) {
			return true
		}
	}
	return false
}

// factor is DRILL's capacity factor (§3.4.3): at what rate a path's traffic
// builds a queue.
func factor(in, out float64) float64 {
	if out == 0 {
		return 0
	}
	return in / out
}

// sourcesUp returns the sources of the link from an aggregation switch to a
// core.
func (q *Quiver) sourcesUp(pod, g, c int) (s sum) {
	if !q.uneven {
		return q.below(pod, g)
	}
	out := q.coreRates(pod, g)[c]
	for _, k := range q.classes[pod*q.t.aggs+g] {
		s = s.plus(k.racks.with(factor(k.rate, out)))
	}
	return s
}

// sourcesDown returns the sources of the link from a core to an aggregation
// switch of a pod.
func (q *Quiver) sourcesDown(pod, g, c int) sum {
	t := q.t
	if !q.uneven {
		return q.under[g*t.cores+c].minus(q.below(pod, g))
	}
	all, ok := q.downs[pod]
	if !ok {
		all = make([]sum, t.aggs*t.cores)
		for i := range all {
			all[i] = q.sourcesOver(pod, i/t.cores, i%t.cores)
		}
		q.downs[pod] = all
	}
	return all[g*t.cores+c]
}

func (q *Quiver) sourcesOver(pod, g, c int) (s sum) {
	out := q.coreRates(pod, g)[c]
	for from := range q.t.pods {
		rate := q.coreRates(from, g)[c]
		if from == pod || rate == dead {
			continue
		}
		for _, k := range q.classes[from*q.t.aggs+g] {
			s = s.plus(k.racks.with(factor(slower(k.rate, rate), out)))
		}
	}
	return s
}

// sourcesLast returns the sources of the link from an aggregation switch to a
// rack; that counts, too, with the same factor at all its links.
func (q *Quiver) sourcesLast(rack position, g int) (s sum) {
	if !q.uneven {
		return q.reach(rack.pod, g)
	}
	t := q.t
	own := t.Rate(t.edgeLink(rack.pod, rack.sw, g))
	for _, k := range q.classes[rack.pod*t.aggs+g] {
		s = s.plus(k.racks.with(factor(k.rate, own)))
	}
	for from := range t.pods {
		if from == rack.pod {
			continue
		}
		rates := q.ratesBetween(from, rack.pod, g)
		for _, k := range q.classes[from*t.aggs+g] {
			seen := q.seen[1][:0] // a label counts once, however many cores give it
			for _, r := range rates {
				if f := factor(slower(k.rate, r), own); !slices.Contains(seen, f) {
					seen = append(seen, f)
					s = s.plus(k.racks.with(f))
				}
			}
			q.seen[1] = seen
		}
	}
	return s
}

// ratesBetween returns the distinct rates, over the cores that they have in
// common, between the g-th aggregation switches of two pods, until the next
// call.
func (q *Quiver) ratesBetween(a, b, g int) []float64 {
	list := q.seen[0][:0]
	ups, downs := q.coreRates(a, g), q.coreRates(b, g)
	for c := range ups {
		if ups[c] == dead || downs[c] == dead {
			continue
		}
		if r := slower(ups[c], downs[c]); !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	q.seen[0] = list
	return list
}
