package fluid

import (
	"fmt"
	"math"
	"math/rand/v2"

	"weft/topology"
)

// Annealing searches paths by simulated annealing (thesis §4.2.4). Its state gives every
// host one core, which all traffic to the host takes; the hosts of a pod have different
// cores. Its energy is the sum by which links are overbooked. The best state begins the
// next search.
type Annealing struct {
	fabric *Fabric
	c      AnnealingConfig
	rng    *rand.Rand

	core []int32 // by host: a path number
	host []int32 // the inverse, pod after pod
	room []int64 // by port, less than nothing where overbooked
	e    int64   // the energy, in units

	flows  []Pair
	demand []int64
	byDst  index
	swaps  [][2]int32 // since the best state

	// Visits counts how often the last Schedule has moved a flow, including the first
	// placement and moves back. It determines the run time.
	Visits int
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

// maxIterations bounds what a search remembers.
const maxIterations = 1 << 24

// NewAnnealing returns a search. It needs a fabric in which a pod has as many
// hosts as there are cores, as in a fat-tree.
func NewAnnealing(f *Fabric, c AnnealingConfig) (*Annealing, error) {
	perPod := f.hosts / f.pods
	switch {
	case f.spread || perPod != f.aggs*f.cores || perPod != f.aggs*len(f.edges)/f.pods:
		return nil, fmt.Errorf("fluid: annealing gives each host of a pod a core of its own: %d hosts, %d cores", perPod, f.aggs*f.cores)
	case c.Iterations < 0 || c.Iterations > maxIterations:
		return nil, fmt.Errorf("fluid: AnnealingConfig.Iterations is %d: 0 to %d", c.Iterations, maxIterations)
	case !(c.C >= 0):
		return nil, fmt.Errorf("fluid: AnnealingConfig.C is %v: 0 or more", c.C)
	}
	a := &Annealing{fabric: f, c: c, rng: rand.New(rand.NewPCG(c.Seed, 0x616e6e65616c))}
	a.core, a.host = make([]int32, f.hosts), make([]int32, f.hosts)
	perRack := perPod / (len(f.edges) / f.pods)
	for h := range a.core {
		// The hosts of a rack begin with cores of different groups, so that all ports
		// down to it are used.
		core := int32(h%perRack*f.cores + h/perRack%(perPod/perRack))
		a.core[h], a.host[int32(h/perPod*perPod)+core] = core, int32(h)
	}
	return a, nil
}

// Schedule searches paths for flows with demands, which are shares of a host's link.
func (a *Annealing) Schedule(flows []Pair, demand []float64) {
	a.flows, a.demand = flows, a.demand[:0]
	for _, d := range demand {
		a.demand = append(a.demand, int64(d*unit))
	}
	a.byDst.build(len(flows), a.fabric.hosts, func(i int) int { return int(flows[i].Dst) })
	a.room, a.e = a.fabric.units(), 0
	a.Visits, a.swaps = 0, a.swaps[:0]
	for h := range a.core {
		a.move(int32(h), 1)
	}
	a.search()
}

// Path returns the path found for a flow.
func (a *Annealing) Path(p Pair) int {
	switch n := int(a.core[p.Dst]); {
	case a.fabric.rack[p.Src] == a.fabric.rack[p.Dst]:
		return 0
	case a.fabric.Pod(p.Src) == a.fabric.Pod(p.Dst):
		return n / a.fabric.cores
	default:
		return n
	}
}

// search is the thesis' Fig. 4.3. It ends early if nothing is overbooked.
func (a *Annealing) search() {
	best := a.e
	for t := a.c.Iterations; t > 0 && a.e > 0; t-- {
		x, y := a.neighbour()
		if x == y {
			continue
		}
		was := a.e
		a.swap(x, y)
		switch {
		case a.e < best:
			best = a.e
			a.swaps = a.swaps[:0]
		case a.e < was || a.rng.Float64() < a.accept(a.e-was, t):
			a.swaps = append(a.swaps, [2]int32{x, y})
		default:
			a.swap(x, y)
		}
	}
	for i := len(a.swaps) - 1; i >= 0; i-- {
		a.swap(a.swaps[i][0], a.swaps[i][1])
	}
}

func (a *Annealing) accept(worse int64, temperature int) float64 {
	return math.Exp(-a.c.C * float64(a.c.Iterations) * float64(worse) / unit / float64(temperature))
}

// neighbour draws two hosts of a pod, in one of the thesis' three ways: any two,
// two of an edge switch, or two that use an edge or aggregation switch on the
// way to their cores.
func (a *Annealing) neighbour() (x, y int32) {
	f := a.fabric
	perPod, perRack := f.hosts/f.pods, f.hosts/len(f.edges)
	way := a.rng.IntN(3)
	if way == 0 {
		return a.two(int32(a.rng.IntN(f.pods)*perPod), perPod)
	}
	if way == 1 || a.rng.IntN(2) == 0 {
		return a.two(int32(a.rng.IntN(len(f.edges))*perRack), perRack)
	}
	// The cores of an aggregation switch are numbered one after the other.
	x, y = a.two(int32(a.rng.IntN(f.pods*f.aggs)*f.cores), f.cores)
	return a.host[x], a.host[y]
}

// two draws two numbers of n from first on.
func (a *Annealing) two(first int32, n int) (x, y int32) {
	return first + int32(a.rng.IntN(n)), first + int32(a.rng.IntN(n))
}

// swap changes the cores of two hosts of a pod.
func (a *Annealing) swap(x, y int32) {
	a.move(x, -1)
	a.move(y, -1)
	a.core[x], a.core[y] = a.core[y], a.core[x]
	first := int32(int(x) / (a.fabric.aggs * a.fabric.cores) * (a.fabric.aggs * a.fabric.cores))
	a.host[first+a.core[x]], a.host[first+a.core[y]] = x, y
	a.move(x, 1)
	a.move(y, 1)
}

// move books what is for a host, or with sign -1 gives it back.
func (a *Annealing) move(host int32, sign int64) {
	for _, i := range a.byDst.of(int(host)) {
		p, d := a.flows[i], sign*a.demand[i]
		r := a.fabric.Route(p.Src, topology.NodeID(host), a.Path(p))
		for _, port := range between(&r) {
			was := a.room[port]
			a.room[port] -= d
			a.e += max(0, -a.room[port]) - max(0, -was)
		}
		a.Visits++
	}
}
