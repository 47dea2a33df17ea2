package chaos

import (
	"math/rand/v2"
	"slices"
	"time"

	"weft/topology"
)

// outage is a target that is failed, at times, from the first to the last of
// its events.
type outage struct {
	target string
	links  []topology.LinkID
	until  time.Duration
}

type generator struct {
	Config
	rng     *rand.Rand
	racks   []topology.NodeID // one host of each
	targets [2][]outage       // links, switches
	now     []outage          // those that last beyond the failure made last
	events  []Event
}

func newGenerator(c Config) *generator {
	g := &generator{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 0))}
	t := c.Topology
	for l := range t.Links() {
		if t.Node(l.A).Layer != topology.LayerHost {
			g.targets[0] = append(g.targets[0], outage{target: t.Node(l.A).Name + "-" + t.Node(l.B).Name, links: []topology.LinkID{l.ID}})
		}
	}
	for n := range t.Nodes() {
		switch n.Layer {
		case topology.LayerEdge: // without it its rack is cut off
			g.racks = append(g.racks, t.FirstHost(n.ID))
		case topology.LayerAgg, topology.LayerCore:
			o := outage{target: n.Name}
			for _, p := range t.Ports(n.ID) {
				o.links = append(o.links, p.Link)
			}
			g.targets[1] = append(g.targets[1], o)
		}
	}
	return g
}

// wait draws from an exponential distribution, without the longest tail.
func (g *generator) wait(mean time.Duration) time.Duration {
	return time.Millisecond + time.Duration(min(g.rng.ExpFloat64(), 5)*float64(mean))
}

// tries is how often a target is drawn before nothing fails this time.
const tries = 16

func (g *generator) failAt(at time.Duration) {
	g.now = slices.DeleteFunc(g.now, func(o outage) bool { return o.until <= at })
	kind := 0
	if g.rng.Float64() < g.Switches {
		kind = 1
	}
	mode := Loud
	if g.rng.Float64() < g.Silences {
		mode = []Mode{Silent, SilentData}[g.rng.IntN(2)]
	}
	flap := g.rng.Float64() < g.Flaps
	if len(g.now) >= g.AtOnce {
		return
	}
	for range tries {
		o := g.targets[kind][g.rng.IntN(len(g.targets[kind]))]
		if !g.allowed(o) {
			continue
		}
		if flap {
			o.until = g.flap(o, mode, at)
		} else {
			o.until = g.outage(o, mode, at, g.wait(g.Outage))
		}
		g.now = append(g.now, o)
		return
	}
}

// outage adds one failure and its end, and returns when that is.
func (g *generator) outage(o outage, mode Mode, at, length time.Duration) time.Duration {
	end := min(at+length, g.Duration)
	g.events = append(g.events,
		Event{at, o.target, o.links, mode},
		Event{end, o.target, o.links, ""})
	return end
}

func (g *generator) flap(o outage, mode Mode, at time.Duration) time.Duration {
	short := time.Duration(flapShare * float64(g.Outage))
	for range 2 + g.rng.IntN(maxFlaps-1) {
		if at >= g.Duration {
			break
		}
		at = g.outage(o, mode, at, g.wait(short)) + g.wait(short)
	}
	return min(at, g.Duration)
}

// allowed reports whether a target may fail besides those that have: it shares
// no link with them, and every pair of racks keeps a path.
func (g *generator) allowed(o outage) bool {
	t := g.Topology.Without(o.links...)
	for _, other := range g.now {
		if slices.ContainsFunc(other.links, func(l topology.LinkID) bool { return slices.Contains(o.links, l) }) {
			return false
		}
		t = t.Without(other.links...)
	}
	for i, src := range g.racks {
		for _, dst := range g.racks[:i] {
			if len(t.Paths(src, dst).Live) == 0 {
				return false
			}
		}
	}
	return true
}
