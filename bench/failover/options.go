package failover

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"time"

	"weft/resequencer"
	"weft/topology"
)

// Options say what to measure, and where.
type Options struct {
	Topology *topology.Topology
	RateMbit float64 // of every link where Topology gives none, Mbit/s; 0: DefaultRate
	// Load is the streams' demand as a share of Ideal; 0: as much as TCP gets. Below 1 no
	// queue stands, so measurements show the hosts and not the length of their queues.
	Load        float64
	Kinds       []string
	Agents      []bool        // with agents and listeners, and without
	Liveness    bool          // hosts also find failures by themselves
	Repetitions int           // of each combination
	Hello       time.Duration // the agents' interval
	Outage      time.Duration // from a failure to its healing
	Settle      time.Duration // before a failure, and after
	Seed        uint64
	Lab         string // name
	// AgentProcess is a command that runs RunAgents; --name and --hello are added. nil:
	// agents run in this process, with the hosts and their load. Soak ignores it.
	AgentProcess []string
	Machine      string // for the results

	// Trace gets, as text, every event from a failure with agents to the last packet sent
	// to the failed part; nil: no trace.
	Trace io.Writer

	Progress func(done, total int) // may be nil
	Note     func(string)          // gets remarks for the reader of the results; may be nil
}

// Bounds of Options.
const (
	maxRepetitions = 10_000
	minOutage      = 100 * time.Millisecond
	maxOutage      = 10 * time.Minute
	minHello       = time.Millisecond
)

// Check returns an error that names the wrong flag.
func (o *Options) Check() error {
	switch {
	case o.Topology == nil:
		return errors.New("--topology is missing")
	case o.Repetitions < 1 || o.Repetitions > maxRepetitions:
		return fmt.Errorf("--repetitions=%d: must be 1 to %d", o.Repetitions, maxRepetitions)
	case !(o.RateMbit > 0 && o.RateMbit <= 30_000):
		return fmt.Errorf("--rate=%g: must be over 0 and up to 30000 Mbit/s", o.RateMbit)
	case !(o.Load >= 0 && o.Load <= 1):
		return fmt.Errorf("--load=%g: must be a part of the ideal up to 1, or 0 for as much as TCP gets", o.Load)
	case o.Outage < minOutage || o.Outage > maxOutage:
		return fmt.Errorf("--outage=%v: must be %v to %v", o.Outage, minOutage, maxOutage)
	case o.Settle < minOutage || o.Settle > maxOutage:
		return fmt.Errorf("--settle=%v: must be %v to %v", o.Settle, minOutage, maxOutage)
	case o.Hello < minHello || o.Hello > time.Minute:
		return fmt.Errorf("--hello=%v: must be %v to %v", o.Hello, minHello, time.Minute)
	}
	for _, k := range o.Kinds {
		if k != KindSeen && k != KindSilent {
			return fmt.Errorf("--kinds: %q is unknown; known: %s", k, strings.Join(Kinds, ", "))
		}
	}
	for _, agents := range o.Agents {
		if !agents && !o.Liveness {
			return errors.New("--liveness=false goes with --agents=true only: nobody would find a failure")
		}
	}
	_, err := permute(o.Topology, o.Seed)
	return err
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

func (o *Options) progress(done, total int) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// perProcessor is the goodput, in Mbit/s, that a processor must carry if no rate
// is given: through six links and two stacks, packet by packet, with some time to
// spare.
const perProcessor = 64

// DefaultRate is the default rate of links, in Mbit/s. It is low enough that the fabric,
// and not this machine, limits the load.
func DefaultRate(t *topology.Topology, load float64) float64 {
	if load == 0 {
		load = 1
	}
	rate := perProcessor * float64(runtime.NumCPU()) / (load * float64(t.NumHosts()))
	return max(math.Floor(2*rate)/2, 0.5)
}

// Complete sets defaults for fields that are 0.
func (o *Options) Complete() {
	if o.RateMbit == 0 && o.Topology != nil {
		o.RateMbit = DefaultRate(o.Topology, o.Load)
	}
}

const fullFrame = 1514 // bytes, as rates count them

// resequencer is scaled to the time that a packet takes on the links.
func (o *Options) resequencer() resequencer.Config {
	packet := time.Duration(fullFrame * 8 / o.RateMbit * float64(time.Microsecond))
	return resequencer.Config{
		MinHold: max(resequencer.DefaultMinHold, 4*packet),
		Hold:    max(resequencer.DefaultHold, 16*packet),
	}
}
