package control

import (
	"math/rand/v2"
	"time"

	"weft/topology"
)

// Chaos does random harm to a Fabric, by seed: cables are cut, go deaf or flap,
// switches lose power, agents crash, leave, and start anew, hosts start anew,
// messages are lost.
type Chaos struct {
	f       *Fabric
	random  *rand.Rand
	crashed map[topology.NodeID]bool // agents that do not run on machines that do
	// Loud leaves out what only hellos can find. An agent that is not to Require
	// them and that has just started cannot know of it.
	Loud bool
	// ClocksGoBack has restarted agents number their lives too low.
	ClocksGoBack bool
}

// NewChaos returns the chaos of a seed.
func NewChaos(f *Fabric, seed uint64) *Chaos {
	return &Chaos{f: f, random: rand.New(rand.NewPCG(seed, 0x6368616f73)), crashed: map[topology.NodeID]bool{}}
}

// Strike does one thing.
func (c *Chaos) Strike() error {
	f, r := c.f, c.random
	link := topology.LinkID(r.IntN(f.top.NumLinks()))
	sw := topology.NodeID(f.top.NumHosts() + r.IntN(f.top.NumNodes()-f.top.NumHosts()))
	switch r.IntN(10) {
	case 0, 1, 2:
		f.Cut(link, !f.cables[link].cut)
	case 3:
		c.flap(link)
	case 4, 5:
		if upper := r.IntN(2) == 0; !c.Loud && int(link) >= f.top.NumHosts() {
			end := 0
			if upper {
				end = 1
			}
			f.Deafen(link, upper, !f.cables[link].deaf[end])
		}
	case 6:
		if c.crashed[sw] {
			break
		}
		return f.Power(sw, f.nodes[sw].off)
	case 7:
		return c.agent(sw)
	case 8:
		return f.Start(topology.NodeID(r.IntN(f.top.NumHosts())), 0)
	case 9:
		f.SetLoss([]float64{0, 0.01, 0.1, 0.3}[r.IntN(4)])
	}
	return nil
}

// flap has a cable go and come several times within milliseconds.
func (c *Chaos) flap(l topology.LinkID) {
	for range 2 * (1 + c.random.IntN(4)) {
		c.f.Cut(l, !c.f.cables[l].cut)
		c.f.Run(c.f.now + time.Duration(c.random.Int64N(int64(5*time.Millisecond))))
	}
}

// agent ends a switch's agent, or starts it, or both at once.
func (c *Chaos) agent(sw topology.NodeID) error {
	f := c.f
	switch {
	case f.nodes[sw].off:
		return nil
	case c.crashed[sw]:
		delete(c.crashed, sw)
		return f.Start(sw, c.back())
	}
	switch c.random.IntN(3) {
	case 0:
		f.Stop(sw)
		c.crashed[sw] = true
	case 1:
		f.Leave(sw)
		return f.Start(sw, c.back())
	default:
		return f.Start(sw, c.back())
	}
	return nil
}

func (c *Chaos) back() time.Duration {
	if !c.ClocksGoBack || c.random.IntN(2) == 0 {
		return 0
	}
	return time.Duration(c.random.Int64N(int64(100 * time.Hour)))
}

// Calm ends what has no end by itself, the loss of messages and agents that do
// not run, and mends every other cable and switch. What stays broken stays.
func (c *Chaos) Calm() error {
	f := c.f
	f.SetLoss(0)
	for l := range f.cables {
		if c.random.IntN(2) == 0 {
			id := topology.LinkID(l)
			f.Deafen(id, false, false)
			f.Deafen(id, true, false)
			f.Cut(id, false)
		}
	}
	for i := f.top.NumHosts(); i < f.top.NumNodes(); i++ {
		id := topology.NodeID(i)
		if c.crashed[id] {
			delete(c.crashed, id)
			if err := f.Start(id, c.back()); err != nil {
				return err
			}
		}
		if c.random.IntN(2) == 0 {
			if err := f.Power(id, true); err != nil {
				return err
			}
		}
	}
	return nil
}
