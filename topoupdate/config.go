package topoupdate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"weft/internal/bucket"
	"weft/topology"
)

// Defaults.
const (
	DefaultHello      = 50 * time.Millisecond
	DefaultMultiplier = 3
	DefaultRefresh    = 5 * time.Second
	DefaultRepeat     = time.Second
	DefaultPace       = time.Millisecond
)

// defaultAges is MaxAge in Refreshes.
const (
	defaultAges   = 4
	DefaultMaxAge = defaultAges * DefaultRefresh
)

// AgentConfig configures an Agent. Zero values mean the defaults; Topology, Self and Boot
// have none.
type AgentConfig struct {
	// Topology is the baseline. Links that are down in it stay down, whatever messages
	// say.
	Topology *topology.Topology
	Self     topology.NodeID // a switch
	// Boot numbers this start of the agent: the time of day in nanoseconds. Not 0. If the
	// clock has gone back, the neighbours tell the agent of its old entries, and it uses
	// higher numbers. Its servers send nothing; they listen to it again after MaxAge.
	Boot uint64
	Seed uint64 // of the jitter

	Hello      time.Duration // between two hellos, at most; default 50 ms
	Multiplier int           // hellos missed until a neighbour is dead; 2 to 255, default 3
	// Require treats links to switches that have never sent a message as dead. Without it
	// their carrier decides, so that agents can be introduced switch by switch.
	Require bool
	Damping Damping

	Refresh time.Duration // between entries without news; default 5 s
	// Repeat is the time between repetitions of an entry that reports something down, or
	// did so within the last Refresh; default 1 s. A change is repeated after one Hello,
	// then after twice as long, and so on up to Repeat. So Repeat bounds the delay that a
	// lost message causes, and how long a server that starts late waits.
	Repeat time.Duration
	MaxAge time.Duration // after which an entry no longer counts; default 4 × Refresh
	// Pace is the least time between two update messages by one port after the first few;
	// default 1 ms.
	Pace time.Duration
	Keys Keys
}

func (c *AgentConfig) setDefaults() {
	setDefault(&c.Hello, DefaultHello)
	setDefault(&c.Multiplier, DefaultMultiplier)
	setDefault(&c.Refresh, DefaultRefresh)
	setDefault(&c.Repeat, min(DefaultRepeat, c.Refresh))
	setDefault(&c.MaxAge, defaultAges*c.Refresh)
	setDefault(&c.Pace, DefaultPace)
}

func setDefault[T comparable](v *T, to T) {
	if *v == *new(T) {
		*v = to
	}
}

func (c *AgentConfig) validate() error {
	switch {
	case c.Topology == nil:
		return errors.New("topoupdate: AgentConfig.Topology is missing: give the baseline")
	case c.Boot == 0:
		return errors.New("topoupdate: AgentConfig.Boot is 0: give the time of day in nanoseconds")
	case c.Hello < minInterval || c.Hello > maxDetection:
		return fmt.Errorf("topoupdate: AgentConfig.Hello is %v: give %v to %v", c.Hello, minInterval, maxDetection)
	case c.Multiplier < 2 || c.Multiplier > 255:
		return fmt.Errorf("topoupdate: AgentConfig.Multiplier is %d: give 2 to 255", c.Multiplier)
	case c.Refresh <= 0 || c.Repeat <= 0 || c.Pace <= 0:
		return errors.New("topoupdate: AgentConfig.Refresh, Repeat and Pace must be positive")
	case c.MaxAge < 2*c.Refresh:
		return fmt.Errorf("topoupdate: AgentConfig.MaxAge is %v, Refresh %v: MaxAge must be at least twice as long, or a lost message ends an entry", c.MaxAge, c.Refresh)
	}
	return c.Damping.setDefaults()
}

// The budget of news by one port: the whole fabric at once, since a new adjacency
// brings that, and then the whole fabric once a second.
const minBudget = 1000

func (f *fabric) budget() bucket.Bucket {
	return bucket.New(float64(max(f.numSwitches(), minBudget)), 2*time.Second)
}

// paceBurst is how many messages of updates leave a port at once.
const paceBurst = 8

// NewAgent returns the agent of a switch. Every port counts as having a carrier until
// Carrier says otherwise.
func NewAgent(c AgentConfig) (*Agent, error) {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	f, err := newFabric(c.Topology)
	if err != nil {
		return nil, err
	}
	if !f.isSwitch(c.Self) {
		return nil, fmt.Errorf("topoupdate: AgentConfig.Self is %d, which is no switch of %s", c.Self, c.Topology)
	}
	ring, err := NewKeyring(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("topoupdate: AgentConfig.%w", err)
	}
	c.Keys = Keys{}
	a := &Agent{
		config: c, fabric: f, ring: ring,
		layer:     f.layer(c.Self),
		db:        newDatabase(f, c.MaxAge),
		repeats:   make([]repeat, f.numSwitches()),
		session:   c.Boot,
		random:    rand.New(rand.NewPCG(c.Seed, c.Boot)),
		scratch:   make([]uint64, f.words),
		packet:    make([]byte, 0, 2*MaxMessage),
		repeatDue: never,
	}
	a.self = a.db.index(c.Self)
	for _, p := range c.Topology.Ports(c.Self) {
		a.ports = append(a.ports, port{
			Port: p, dir: directionOf(c.Topology, p), carrier: true,
			pending: newBitset(f.numSwitches()),
			pace:    bucket.Every(c.Pace, 0).AtLeast(paceBurst),
			budget:  f.budget(),
		})
	}
	return a, nil
}
