package blame

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"weft/liveness"
)

const (
	// doubt is the negative logarithm of the chance that a fabric without a lossy place gets
	// one blamed: 10^-9, for each place that may be.
	doubt = 20.7
	// least is the rate of losses below which no place is blamed, and times how much more than
	// other paths it must lose.
	least = 0.001
	times = 3
	// enough is how many losses, or bursts of them, a place is blamed for at least.
	enough = 8
	// share is the part of the paths that cross no place that is blamed, at least: what
	// more paths have in common is nobody's fault.
	share = 0.25
	// most is how many places are blamed in one call.
	most = 16
	// mostHurt is how many hosts are named that a place has hurt.
	mostHurt = 8
)

// Path is a path with its evidence.
type Path struct {
	// Places are the links, switches and hosts that its packets cross. An answer that takes
	// the same path back crosses them again; each stands once.
	Places []Place
	To     netip.Addr // the host that its packets are for; the own one for a way up and back
	liveness.Lately
}

// Verdict blames a place.
type Verdict struct {
	// Places is the place, of links, switches and hosts in this order. It is several where no
	// path tells them apart: one of these, or all.
	Places []Place
	Loss   float64 // part of the packets that it loses, in (0, 1]
	Lost   float64 // packets of Paths that were lost
	Paths  int     // paths over it with evidence
	// Confidence is the chance that this place is at fault and not another one which explains
	// the same losses, in (0, 1].
	Confidence float64
	// Hurt is the hosts whose packets were lost there, those first that lost most: at most 8.
	Hurt []Hurt
}

// Hurt is a host that lost packets.
type Hurt struct {
	Host netip.Addr
	Lost float64 // packets, by paths over the place
}

// Losses returns the places that lose packets, those first whose evidence is best: at most 16.
// It takes time in proportion to the sum of the paths' lengths, for each place that it blames.
// It keeps nothing of paths.
func Losses(paths []Path) []Verdict {
	s := newSearch(paths)
	// What the paths over good places lose is known only when the bad ones are. The first guess
	// is low, so it blames some for nothing; later ones take that back.
	found := s.blame(s.quietest())
	for range 4 {
		again := s.blame(s.rate(func(path int) bool { return !s.over[path] }))
		same := slices.EqualFunc(found, again, func(a, b Verdict) bool { return a.Places[0] == b.Places[0] })
		if found = again; same {
			break
		}
	}
	return found
}

// search is the state of one call of Losses.
type search struct {
	paths   []evidence
	classes []class
	base    float64   // rate at which all paths lose packets
	arrive  []float64 // chance that a packet arrives by each path, as far as is explained
	over    []bool    // paths that cross a place that is blamed
}

// evidence is what is known of a path: packets, and the sum of squares of the losses in
// slots of time about their mean.
type evidence struct {
	sent, lost, scatter float64
	to                  netip.Addr
}

// class is places that the same paths cross.
type class struct {
	places []Place
	paths  []int32
	blamed bool
}

func newSearch(paths []Path) *search {
	s := &search{}
	over := map[Place][]int32{}
	for _, p := range paths {
		e := evidence{sent: float64(p.Sent), lost: float64(min(p.Lost, p.Sent)), to: p.To}
		if !(e.sent > 0) || math.IsInf(e.sent, 0) || !(e.lost >= 0) {
			continue
		}
		e.scatter = max(float64(p.Squares)-e.lost*e.lost/max(float64(p.Slots), 1), 0)
		n := int32(len(s.paths))
		s.paths = append(s.paths, e)
		for i, at := range p.Places {
			if !slices.Contains(p.Places[:i], at) {
				over[at] = append(over[at], n)
			}
		}
	}
	s.arrive, s.over = make([]float64, len(s.paths)), make([]bool, len(s.paths))
	s.classes = classesOf(over, len(s.paths))
	return s
}

// classesOf puts places together that the same of n paths cross.
func classesOf(over map[Place][]int32, n int) []class {
	random := rand.New(rand.NewPCG(1, 1))
	tags := make([]uint64, n)
	for i := range tags {
		tags[i] = random.Uint64()
	}
	var classes []class
	found := map[uint64]int{}
	for _, at := range slices.SortedFunc(maps.Keys(over), comparePlaces) {
		var tag uint64
		for _, p := range over[at] {
			tag += tags[p]
		}
		i, ok := found[tag]
		if !ok {
			i = len(classes)
			found[tag] = i
			classes = append(classes, class{paths: over[at]})
		}
		classes[i].places = append(classes[i].places, at)
	}
	return classes
}

// quietest returns the rate of losses of the quarter of the paths that lose least.
func (s *search) quietest() float64 {
	rates := make([]float64, len(s.paths))
	for i, p := range s.paths {
		rates[i] = p.lost / p.sent
	}
	slices.Sort(rates)
	return s.rate(func(i int) bool { return s.paths[i].lost/s.paths[i].sent <= rates[len(rates)/4] })
}

// rate returns the rate at which some paths lose packets. There is always one loss that was
// not seen yet.
func (s *search) rate(of func(path int) bool) float64 {
	sent, lost := 1000.0, 1.0
	for i, p := range s.paths {
		if of(i) {
			sent += p.sent
			lost += p.lost
		}
	}
	return min(lost/sent, 0.5)
}

// blame returns the places to blame if all paths lose packets at a rate whatever their links.
func (s *search) blame(base float64) (found []Verdict) {
	s.base = base
	for i := range s.arrive {
		s.arrive[i], s.over[i] = 1-base, false
	}
	for i := range s.classes {
		s.classes[i].blamed = false
	}
	for len(found) < most {
		v, ok := s.next()
		if !ok {
			break
		}
		found = append(found, v)
	}
	return found
}

// next blames the place that explains most of what is not explained yet.
func (s *search) next() (Verdict, bool) {
	evidence := make([]float64, len(s.classes))
	best, found := Verdict{}, -1
	for i := range s.classes {
		v, e := s.weigh(&s.classes[i])
		evidence[i] = e
		if e > 0 && (found < 0 || e > evidence[found]) {
			best, found = v, i
		}
	}
	if found < 0 || evidence[found] < doubt+math.Log(float64(len(s.classes))) {
		return Verdict{}, false
	}
	c := &s.classes[found]
	c.blamed = true
	for _, p := range c.paths {
		s.arrive[p], s.over[p] = max(s.arrive[p]*(1-best.Loss), 1e-12), true
	}
	all := 0.0
	for _, e := range evidence {
		all += math.Exp(e - evidence[found])
	}
	best.Confidence, best.Hurt = 1/all, s.hurt(c)
	return best, true
}

// weigh returns what a class of places loses, and how much more likely the evidence is with
// that than without: the logarithm, divided by the dispersion; 0 if it loses nothing to
// speak of.
func (s *search) weigh(c *class) (Verdict, float64) {
	v := Verdict{Places: c.places, Paths: len(c.paths)}
	if c.blamed {
		return v, 0
	}
	arrived, expected, scatter := 0.0, 0.0, 0.0
	for _, i := range c.paths {
		p := &s.paths[i]
		arrived += p.sent - p.lost
		expected += p.sent * s.arrive[i]
		scatter += p.scatter
		v.Lost += p.lost
	}
	if v.Loss = 1 - arrived/expected; v.Loss < max(least, times*s.base) || !s.leavesEnough(c) {
		return v, 0
	}
	likelier := 0.0
	for _, i := range c.paths {
		p := &s.paths[i]
		was := s.arrive[i]
		is := was * (1 - v.Loss)
		if p.lost > 0 {
			likelier += p.lost * math.Log((1-is)/(1-was))
		}
		if p.sent > p.lost {
			likelier += (p.sent - p.lost) * math.Log(max(1-v.Loss, 1e-12))
		}
	}
	dispersion := max(scatter/v.Lost, 1)
	if v.Lost/dispersion < enough {
		return v, 0
	}
	return v, likelier / dispersion
}

// leavesEnough reports whether enough paths cross neither a class of places nor what is blamed.
func (s *search) leavesEnough(c *class) bool {
	left := len(s.paths)
	for _, over := range s.over {
		if over {
			left--
		}
	}
	for _, p := range c.paths {
		if !s.over[p] {
			left--
		}
	}
	return float64(left) >= share*float64(len(s.paths))
}

// hurt returns the hosts that lost most by the paths of a class.
func (s *search) hurt(c *class) []Hurt {
	lost := map[netip.Addr]float64{}
	for _, i := range c.paths {
		if p := &s.paths[i]; p.lost > 0 {
			lost[p.to] += p.lost
		}
	}
	hurt := make([]Hurt, 0, len(lost))
	for to, n := range lost {
		hurt = append(hurt, Hurt{to, n})
	}
	slices.SortFunc(hurt, func(a, b Hurt) int { return cmp.Or(cmp.Compare(b.Lost, a.Lost), a.Host.Compare(b.Host)) })
	return hurt[:min(len(hurt), mostHurt)]
}
