package switchd

import (
	"errors"
	"fmt"
	"time"

	"weft/fabric"
	"weft/internal/eventlog"
	"weft/topology"
	"weft/topoupdate"
)

// Config configures an Agent. Zero values stand for topoupdate's defaults, except that
// Topology and Self must be set.
type Config struct {
	Topology   *topology.Topology // the baseline
	Self       topology.NodeID    // the switch
	PortFormat string             // "" is fabric.DefaultPortFormat
	Encap      string             // what paths are in: ipip, srv6 or mpls; "" is ipip
	Routing    string             // one of fabric.Routings; "" is fabric.RoutingECMP
	Groups     bool               // routes have groups: fabric.GroupsOf

	Hello           time.Duration
	Multiplier      int
	Require         bool
	Refresh, MaxAge time.Duration
	Damping         topoupdate.Damping
	Keys            topoupdate.Keys // a From counts from Start

	// Routes makes the agent keep the switch's routes. Without it they stay as they are,
	// which is enough for encapsulated packets.
	Routes bool

	// Leaf makes the agent of an edge switch keep the paths of conga and luopan that others
	// have attached to its ports, as a lab has: fabric.LeafPaths. Other agents ignore it.
	Leaf bool

	// Boot numbers this start; 0 is the time of day in nanoseconds. Seed is the
	// jitter's; 0 is one of the switch's own.
	Boot, Seed uint64

	// Changed, if not nil, is called with every new snapshot, one call at a time,
	// after it has been flooded. It must return soon, and not call Close.
	Changed func(*topology.Topology)

	// Carrier, if not nil, is called when the agent has read of a change of a port's
	// carrier, before it acts on it. It is for traces. It is called like Changed, and must
	// obey the same rules.
	Carrier func(port int, up bool)

	// Log, if not nil, gets an event for each neighbour and link that goes or comes back, and
	// for each change of others that the agent has undone or cannot undo.
	Log *eventlog.Log

	owned []owned                     // what the agent keeps besides the routes
	group func(fabric.NodePlan) error // is told of each plan before the routes are made, if not nil
	fixed bool                        // without Routes: the baseline's are kept as they are

	// step, if not nil, does what is due at a time since the start: that of a classifier.
	step func(time.Duration) error
}

// owned is a part of the switch that the agent keeps as it is to be, such as a
// *fabric.SwitchSetup. Each method says what it has mended.
type owned interface {
	Repair() ([]string, error)
	RepairSettings() ([]string, error) // what the kernel does not tell of, which is cheap
}

// agent returns the protocol's part.
func (c Config) agent(now time.Time) topoupdate.AgentConfig {
	a := topoupdate.AgentConfig{
		Topology: c.Topology, Self: c.Self, Boot: c.Boot, Seed: c.Seed,
		Hello: c.Hello, Multiplier: c.Multiplier, Require: c.Require, Damping: c.Damping,
		Refresh: c.Refresh, MaxAge: c.MaxAge, Keys: c.Keys,
	}
	if a.Boot == 0 {
		a.Boot = uint64(now.UnixNano())
	}
	if a.Seed == 0 {
		a.Seed = uint64(c.Self) + 1 // or neighbours would keep step
	}
	return a
}

// carrierEvery is how often the ports' losses of carrier are counted: a link that
// has died is known in a fifth of a Hello, however late the kernel's message is.
func (c Config) carrierEvery() time.Duration {
	hello := c.Hello
	if hello == 0 {
		hello = topoupdate.DefaultHello
	}
	return hello / 5
}

// plan returns the switch's in a topology.
func (c Config) plan(t *topology.Topology) (fabric.NodePlan, error) {
	opts := fabric.Options{PortFormat: c.PortFormat, Routing: c.Routing, Groups: c.Groups}
	if c.Encap != "" {
		if err := opts.Carry(c.Encap); err != nil {
			return fabric.NodePlan{}, err
		}
	}
	return fabric.Plan(t, c.Self, opts)
}

func (c Config) check() error {
	switch {
	case c.Topology == nil:
		return errors.New("Topology is missing: give the fabric's, such as topology.Parse(\"fat-tree:k=4\")")
	case !c.Topology.Valid(c.Self) || c.Topology.Node(c.Self).Layer == topology.LayerHost:
		return fmt.Errorf("Self is node %d, which is no switch of %s", c.Self, c.Topology)
	}
	return nil
}
