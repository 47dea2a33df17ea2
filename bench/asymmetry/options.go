package asymmetry

import (
	"errors"
	"fmt"
	"time"

	"weft/bench/testbed"
	"weft/encap"
	"weft/fabric"
	"weft/lab"
	"weft/policy"
	"weft/resequencer"
)

// Options say what to measure. Complete sets defaults for fields that are 0.
type Options struct {
	Scenarios []Scenario
	Rows      []testbed.Row // hosts of weft only

	Hosts    int     // per rack
	Streams  int     // per host of the two sending racks
	RateMbit float64 // of the links between switches in Mbit/s; those of hosts have hostRate times as much

	Warmup, Duration time.Duration // before the measurement; of the measurement

	// Memory uses the fabric in memory. Otherwise it is built of network namespaces,
	// which needs root.
	Memory bool
	Lab    string // name of the lab of network namespaces
	Seed   uint64

	Carrier encap.Carrier
	Policy  policy.Options
	// Plain runs without the meters of switches.
	Plain bool
	Tau   time.Duration // of the DREs of conga, at hosts and switches

	// Progress, if not nil, is called with how much is done and what.
	Progress func(what string, done, total int)
}

// Bounds of Options.
const (
	minRateMbit, maxRateMbit = 0.1, 30000
	maxHosts, maxStreams     = 32, 64
	minDuration, maxDuration = 500 * time.Millisecond, time.Hour
)

// The defaults.
const (
	DefaultHosts    = 4
	DefaultStreams  = 2
	DefaultRateMbit = 20
	DefaultWarmup   = 3 * time.Second
	DefaultDuration = 8 * time.Second
	// Presto's 64 KB are a whole window of links as slow as the default.
	DefaultFlowcell = 4 << 10
)

// DefaultPolicies are those that the papers compare.
var DefaultPolicies = []string{"presto", "rand", "luopan", "conga", "letflow"}

const (
	fullFrame  = 1514 // bytes, as rates count them
	queueBytes = 75000
)

// packetTime is how long a full packet takes on a link between switches.
func (o *Options) packetTime() time.Duration {
	return time.Duration(fullFrame * 8 / o.RateMbit * float64(time.Microsecond))
}

// Complete fills in the defaults. Times are by the links' rate, which is a
// thousandth of the papers'.
func (o *Options) Complete() {
	if len(o.Scenarios) == 0 {
		o.Scenarios = Scenarios()
	}
	if o.Hosts == 0 {
		o.Hosts = DefaultHosts
	}
	if o.Streams == 0 {
		o.Streams = DefaultStreams
	}
	if o.RateMbit == 0 {
		o.RateMbit = DefaultRateMbit
	}
	if o.Policy.FlowcellBytes == 0 {
		o.Policy.FlowcellBytes = DefaultFlowcell
	}
	if o.Policy.FlowletGap == 0 {
		o.Policy.FlowletGap = FlowletPackets * o.packetTime()
	}
	if o.Tau == 0 {
		o.Tau = fabric.DefaultTau(o.RateMbit * 1e6)
	}
}

// FlowletPackets is the pause that ends a flowlet, in full packets' times: half of the
// time that a full queue takes. CONGA's 500 µs are 400 packets' time at 10 Gbit/s, but
// hosts there send 45 packets at a time. Netstack over slow links sends one or two for
// each acknowledgement, and hardly ever makes such pauses. With much shorter pauses conga
// chooses again and again by the same report, and all hosts choose the same path (with 4
// packets' time it gets a third less than with 25 where A1-T1 is down).
const FlowletPackets = 25

// Check returns an error that names the wrong flag.
func (o *Options) Check() error {
	switch {
	case len(o.Rows) == 0:
		return errors.New("--policies names none")
	case o.Hosts < 1 || o.Hosts > maxHosts:
		return fmt.Errorf("--hosts=%d: must be 1 to %d a rack", o.Hosts, maxHosts)
	case o.Streams < 1 || o.Streams > maxStreams:
		return fmt.Errorf("--streams=%d: must be 1 to %d a host", o.Streams, maxStreams)
	case !(o.RateMbit >= minRateMbit && o.RateMbit <= maxRateMbit):
		return fmt.Errorf("--rate=%g: must be %g to %d Mbit/s", o.RateMbit, minRateMbit, maxRateMbit)
	case o.Duration < minDuration || o.Duration > maxDuration:
		return fmt.Errorf("--duration=%v: must be %v to %v", o.Duration, minDuration, maxDuration)
	case o.Warmup < 0 || o.Warmup > maxDuration:
		return fmt.Errorf("--warmup=%v: must be 0 to %v", o.Warmup, maxDuration)
	case o.Tau < time.Microsecond || o.Tau > time.Minute:
		return fmt.Errorf("--tau=%v: must be 1µs to 1m, or 0 for the time of 133 packets", o.Tau)
	case o.Carrier == encap.CarrierMPLS:
		return errors.New("--encap=mpls: hosts here send IP; take ipip or srv6")
	}
	for _, r := range o.Rows {
		if r.Kernel {
			return fmt.Errorf("--policies: %s is the kernel's TCP; compared are hosts of weft: %v", r.Name, policy.Names())
		}
	}
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("--flowcell, --flowlet-gap, --samples or --expiry: %w", err)
	}
	return nil
}

// resequencer is scaled to the links. What overtakes waits for what is in a full
// queue: a hold that is shorter would take asymmetry for loss.
func (o *Options) resequencer() resequencer.Config {
	queue := time.Duration(queueBytes / fullFrame * float64(o.packetTime()))
	return resequencer.Config{
		MinHold: max(resequencer.DefaultMinHold, 4*o.packetTime()),
		Hold:    max(resequencer.DefaultHold, queue+10*o.packetTime()),
	}
}

// config is what a scenario's testbed is made from.
func (o *Options) config(s Scenario) (c testbed.Config, err error) {
	c = testbed.Config{
		RateMbit:    o.RateMbit,
		Policy:      o.Policy,
		Resequencer: o.resequencer(),
		Seed:        o.Seed,
		Carrier:     o.Carrier,
	}
	if !o.Plain {
		c.Meter = &lab.Meter{Tau: o.Tau}
	}
	c.Topology, c.Known, err = s.fabric(o.Hosts, o.RateMbit)
	return c, err
}
