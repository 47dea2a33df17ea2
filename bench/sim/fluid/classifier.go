package fluid

import "math/rand/v2"

// Classifier is flow classification in edge and aggregation switches (thesis §3.1.6, Fig.
// 3.11). A switch gives a new flow the port up that carries least, and now and then moves
// flows from the port that carries most. It is for flows that all send at one rate and
// never end.
type Classifier struct {
	fabric *Fabric
	rate   float64
	pairs  []Pair
	up     [][2]int // by flow: which of its edge and aggregation switch's ports
	ties   Ties
	rng    *rand.Rand
}

// Ties is what a switch does with a new flow if several ports carry least.
type Ties int

// The ways.
const (
	DrawnTies  Ties = iota // draws one of them
	FirstOfAll             // takes the first of them
	Unseen                 // draws one of all ports: flows that begin together carry nothing yet
)

// NewClassifier starts flows, in their order. If several ports carry least, it draws one
// of them.
func NewClassifier(f *Fabric, pairs []Pair, rate float64, seed uint64) *Classifier {
	return NewClassifierBy(f, pairs, rate, seed, DrawnTies)
}

// NewClassifierBy is NewClassifier with another way among ports that carry least.
func NewClassifierBy(f *Fabric, pairs []Pair, rate float64, seed uint64, ties Ties) *Classifier {
	c := &Classifier{fabric: f, rate: rate, pairs: pairs, up: make([][2]int, len(pairs)), ties: ties,
		rng: rand.New(rand.NewPCG(seed, 0x636c617373))}
	for i := range pairs {
		for layer := range c.choices(i) {
			c.up[i][layer] = c.least(i, layer)
		}
	}
	return c
}

// choices returns in how many switches a flow has one.
func (c *Classifier) choices(i int) int {
	switch p := c.pairs[i]; {
	case c.fabric.Paths(p.Src, p.Dst) == 1:
		return 0
	case c.fabric.Pod(p.Src) == c.fabric.Pod(p.Dst):
		return 1
	}
	return 2
}

// place names the switch of a layer that a flow passes, and how many ports up it
// has.
func (c *Classifier) place(i, layer int) (sw, ports int) {
	if layer == 0 {
		return c.fabric.Rack(c.pairs[i].Src), c.fabric.aggs
	}
	return c.fabric.Pod(c.pairs[i].Src)*c.fabric.aggs + c.up[i][0], c.fabric.cores
}

// least returns the port to which fewest of the flows before go.
func (c *Classifier) least(i, layer int) int {
	sw, ports := c.place(i, layer)
	flows := make([]int, ports)
	for j := range i {
		if c.ties != Unseen && c.choices(j) > layer {
			if other, _ := c.place(j, layer); other == sw {
				flows[c.up[j][layer]]++
			}
		}
	}
	best, ties := 0, 0
	for p, n := range flows {
		switch {
		case n > flows[best]:
			continue
		case n < flows[best]:
			ties = 0
		}
		ties++
		if drawn := c.rng.IntN(ties) == 0; ties == 1 || drawn && c.ties != FirstOfAll {
			best = p
		}
	}
	return best
}

// Routes returns the flows' routes.
func (c *Classifier) Routes() []Route {
	routes := make([]Route, len(c.pairs))
	for i, p := range c.pairs {
		path := c.up[i][0]
		if c.choices(i) == 2 {
			path = path*c.fabric.cores + c.up[i][1]
		}
		routes[i] = c.fabric.Route(p.Src, p.Dst, path)
	}
	return routes
}

// Rearrange makes every switch move up to three flows, one after the other: each time the
// largest flow that is smaller than the difference between the fullest and the emptiest
// port. Sizes are the rates that leave the switch, as counters of its ports would show.
func (c *Classifier) Rearrange() {
	for layer := range 2 {
		rates := c.fabric.OpenLoop(c.Routes(), c.rate)
		bySwitch := make(map[int][]int)
		var switches []int
		for i := range c.pairs {
			if c.choices(i) <= layer {
				continue
			}
			sw, _ := c.place(i, layer)
			if bySwitch[sw] == nil {
				switches = append(switches, sw)
			}
			bySwitch[sw] = append(bySwitch[sw], i)
		}
		for _, sw := range switches {
			for range 3 {
				c.move(bySwitch[sw], layer, rates)
			}
		}
	}
}

// move moves one of a switch's flows.
func (c *Classifier) move(flows []int, layer int, rates []Rates) {
	_, ports := c.place(flows[0], layer)
	// Hop 0 is the host's own port, what leaves port 1+layer comes to the next.
	size := func(i int) float64 { return rates[i][layer+2] }
	sent := make([]float64, ports)
	for _, i := range flows {
		sent[c.up[i][layer]] += size(i)
	}
	most, least := 0, 0
	for p, s := range sent {
		if s > sent[most] {
			most = p
		}
		if s < sent[least] {
			least = p
		}
	}
	largest := none
	for _, i := range flows {
		if c.up[i][layer] == most && size(i) < (sent[most]-sent[least])*(1-slack) && (largest == none || size(i) > size(largest)) {
			largest = i
		}
	}
	if largest != none {
		c.up[largest][layer] = least
	}
}
