package hedera

import (
	"fmt"
	"math"
	"math/rand/v2"

	"weft/topology"
)

// Annealing searches paths by simulated annealing (thesis §4.2.4). Its state gives every
// host one choice, which stands for the paths that all traffic to the host takes. Its energy
// is the sum by which links are overbooked. The best state begins the next search.
//
// In a fat-tree a choice is a core, and the hosts of a pod have different ones: a neighbour
// of a state exchanges those of two hosts. Where a pod has not as many hosts as there are
// choices, a neighbour may also give one host another choice.
type Annealing struct {
	space  Space
	c      AnnealingConfig
	rng    *rand.Rand
	layout Layout
	pods   [][]topology.NodeID // hosts
	racks  [][]topology.NodeID
	paired bool // each host of a pod has another choice, and each choice a host

	choice []int32           // by host
	pod    []int32           // by host
	host   []topology.NodeID // if paired, the inverse of choice, pod after pod
	room   []int64           // by port, less than nothing where overbooked
	e      int64             // the energy, in units
	uses   []Use

	flows  []Pair
	demand []int64
	byDst  index
	steps  []step // since the best state

	// Visits counts how often the last Schedule has moved a flow, including the first
	// placement and moves back. It determines the run time.
	Visits int
	// Undone counts those of Visits that went back to a state.
	Undone int
}

// step is the way from a state to its neighbour.
type step struct {
	x, y topology.NodeID // whose choices are exchanged; x == y: that of x alone is another one
	was  int32           // its choice before
}

// AnnealingConfig configures a search.
type AnnealingConfig struct {
	Iterations int
	// C is the thesis' c as a multiple of the first temperature: a state that is
	// worse by so many hosts' links as ΔE is taken with probability
	// exp(-C·T0·ΔE/T). The thesis has 0.5 for 16 hosts, 1000 for more.
	C    float64
	Seed uint64
}

// Check returns what is wrong with a configuration.
func (c AnnealingConfig) Check() error {
	switch {
	case c.Iterations < 0 || c.Iterations > maxIterations:
		return fmt.Errorf("hedera: AnnealingConfig.Iterations is %d: 0 to %d", c.Iterations, maxIterations)
	case !(c.C >= 0):
		return fmt.Errorf("hedera: AnnealingConfig.C is %v: 0 or more", c.C)
	}
	return nil
}

// maxIterations bounds what a search remembers.
const maxIterations = 1 << 24

// NewAnnealing returns a search.
func NewAnnealing(s Space, c AnnealingConfig) (*Annealing, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	a := &Annealing{space: s, c: c, rng: rand.New(rand.NewPCG(c.Seed, 0x616e6e65616c)), layout: s.Layout()}
	a.choice, a.pod = make([]int32, s.Hosts()), make([]int32, s.Hosts())
	n, stride := a.layout.Choices, a.layout.Stride
	if n < 1 || stride < 1 || n%stride != 0 {
		return nil, fmt.Errorf("hedera: a destination has %d choices in groups of %d: annealing needs one, and groups that are alike", n, stride)
	}
	a.paired = true
	for p, pod := range a.layout.Pods {
		var hosts []topology.NodeID
		for r, rack := range pod {
			// The hosts of a rack begin with choices of different groups, so that all ports
			// down to it are used.
			for i, h := range rack {
				a.choice[h], a.pod[h] = int32((i*stride+r)%n), int32(p)
			}
			a.racks = append(a.racks, rack)
			hosts = append(hosts, rack...)
		}
		a.pods = append(a.pods, hosts)
		a.paired = a.paired && a.different(hosts)
	}
	if a.paired {
		a.host = make([]topology.NodeID, len(a.pods)*n)
		for h, c := range a.choice {
			a.host[int(a.pod[h])*n+int(c)] = topology.NodeID(h)
		}
	}
	return a, nil
}

// different reports whether hosts have all choices, each a different one.
func (a *Annealing) different(hosts []topology.NodeID) bool {
	seen := make([]bool, a.layout.Choices)
	for _, h := range hosts {
		if seen[a.choice[h]] {
			return false
		}
		seen[a.choice[h]] = true
	}
	return len(hosts) == len(seen)
}

// Schedule searches paths for flows with demands, which are shares of a host's link.
func (a *Annealing) Schedule(flows []Pair, demand []float64) {
	a.flows, a.demand = flows, a.demand[:0]
	for _, d := range demand {
		a.demand = append(a.demand, int64(d*unit))
	}
	a.byDst.build(len(flows), a.space.Hosts(), func(i int) int { return int(flows[i].Dst) })
	a.room, a.e = units(a.space), 0
	a.Visits, a.Undone, a.steps = 0, 0, a.steps[:0]
	for h := range a.choice {
		a.move(topology.NodeID(h), 1)
	}
	a.search()
}

// Path returns the path found for a flow.
func (a *Annealing) Path(p Pair) int { return a.space.PathBy(p.Src, p.Dst, int(a.choice[p.Dst])) }

// Prefer makes a path that a flow has the first state of its destination.
func (a *Annealing) Prefer(p Pair, path int) {
	if a.Path(p) == path {
		return
	}
	c := int32(a.space.ChoiceOf(p.Src, p.Dst, path))
	if !a.paired {
		a.choice[p.Dst] = c
		return
	}
	a.exchange(p.Dst, a.host[int(a.pod[p.Dst])*a.layout.Choices+int(c)])
}

// search is the thesis' Fig. 4.3. It ends early if nothing is overbooked.
func (a *Annealing) search() {
	best := a.e
	for t := a.c.Iterations; t > 0 && a.e > 0; t-- {
		next, some := a.neighbour()
		if !some {
			continue
		}
		was := a.e
		a.take(&next)
		switch {
		case a.e < best:
			best = a.e
			a.steps = a.steps[:0]
		case a.e < was || a.rng.Float64() < a.accept(a.e-was, t):
			a.steps = append(a.steps, next)
		default:
			a.undo(&next)
		}
	}
	for i := len(a.steps) - 1; i >= 0; i-- {
		a.undo(&a.steps[i])
	}
}

// undo goes back from a neighbour.
func (a *Annealing) undo(s *step) {
	before := a.Visits
	a.take(s)
	a.Undone += a.Visits - before
}

func (a *Annealing) accept(worse int64, temperature int) float64 {
	return math.Exp(-a.c.C * float64(a.c.Iterations) * float64(worse) / unit / float64(temperature))
}

// neighbour draws two hosts of a pod, in one of the thesis' three ways: any two, two of an
// edge switch, or two that use an edge or aggregation switch on the way to their cores.
// Where choices are not paired, the last is a host that is given any choice.
func (a *Annealing) neighbour() (s step, some bool) {
	way := a.rng.IntN(3)
	switch {
	case way == 0:
		s.x, s.y = a.two(a.pods[a.rng.IntN(len(a.pods))])
	case way == 1 || a.rng.IntN(2) == 0:
		s.x, s.y = a.two(a.racks[a.rng.IntN(len(a.racks))])
	case a.paired:
		// Choices that share an aggregation switch are numbered one after the other.
		groups := a.layout.Choices / a.layout.Stride
		first := a.rng.IntN(len(a.pods)*groups) * a.layout.Stride
		s.x, s.y = a.two(a.host[first : first+a.layout.Stride])
	default:
		s.x = topology.NodeID(a.rng.IntN(len(a.choice)))
		s.y, s.was = s.x, int32(a.rng.IntN(a.layout.Choices))
		return s, s.was != a.choice[s.x]
	}
	return s, s.x != s.y
}

// two draws two of some hosts.
func (a *Annealing) two(hosts []topology.NodeID) (x, y topology.NodeID) {
	if len(hosts) == 0 {
		return 0, 0
	}
	return hosts[a.rng.IntN(len(hosts))], hosts[a.rng.IntN(len(hosts))]
}

// take goes to the neighbour; a second time, back.
func (a *Annealing) take(s *step) {
	a.move(s.x, -1)
	if s.x == s.y {
		a.choice[s.x], s.was = s.was, a.choice[s.x]
		a.move(s.x, 1)
		return
	}
	a.move(s.y, -1)
	a.exchange(s.x, s.y)
	a.move(s.x, 1)
	a.move(s.y, 1)
}

// exchange exchanges the choices of two hosts of a pod.
func (a *Annealing) exchange(x, y topology.NodeID) {
	a.choice[x], a.choice[y] = a.choice[y], a.choice[x]
	if a.paired {
		first := int(a.pod[x]) * a.layout.Choices
		a.host[first+int(a.choice[x])], a.host[first+int(a.choice[y])] = x, y
	}
}

// move books what is for a host, or with sign -1 gives it back.
func (a *Annealing) move(host topology.NodeID, sign int64) {
	for _, i := range a.byDst.of(int(host)) {
		p, d := a.flows[i], sign*a.demand[i]
		a.uses = a.space.AppendRoute(a.uses[:0], p.Src, host, a.Path(p))
		for _, u := range a.uses {
			was := a.room[u.Port]
			a.room[u.Port] -= u.of(d)
			a.e += max(0, -a.room[u.Port]) - max(0, -was)
		}
		a.Visits++
	}
}
