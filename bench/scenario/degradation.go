package scenario

import (
	"fmt"
	"math/rand/v2"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
	"weft/topology"
)

// degradation is DRB's experiment of Fig. 12: a permutation in a fat-tree of
// which core 3.0 fails, then 3.1; then 3.1 comes back, then 3.0.
type degradation struct {
	K      int // of the fat-tree, at least 4
	Policy string
	Phase  time.Duration // between two events, a multiple of 20 ms
	// Learn is the time from an event until switches and hosts know. If it is negative,
	// nobody is told, and hosts find out alone: see Hosts.
	Learn time.Duration
	Seed  uint64
	// Hosts, if not nil, may change the configuration of a host.
	Hosts func(name string, c *stack.Config)
}

// degradationTick is how often a degradation looks at the goodput.
const degradationTick = 10 * time.Millisecond

// degradationLinks are slow, so that a second has few packets. A host's queue is shorter
// than a switch's. A queue of a thousand packets, Linux's default, would empty into the
// switches when a core fails. That is more than they hold, and TCP takes seconds to
// repair the losses.
var degradationLinks = simnet.Config{RateBits: 100e6, Delay: 5 * time.Microsecond, QueueBytes: 300_000, HostQueueBytes: 75_000}

// degradationPhases names the phases of a degradation.
var degradationPhases = [5]string{"all live", "3.0 down", "3.0 and 3.1 down", "3.0 down", "all live"}

// degradationDown are the cores that are down in each phase.
var degradationDown = [len(degradationPhases)][]string{1: {"3.0"}, 2: {"3.0", "3.1"}, 3: {"3.0"}}

// DegradationResult is the result of a degradation. Goodputs are those of all hosts
// together, in bits per second.
type DegradationResult struct {
	Goodput []float64 // by tick of 10 ms
	// Steady is the goodput in the second half of each phase.
	Steady [len(degradationPhases)]float64
	// Recovered is how long each phase took to reach 95 % of Steady.
	Recovered [len(degradationPhases)]time.Duration
	// Stuck is how many of the Connections received nothing in some phase's
	// second half.
	Stuck, Connections    int
	Retransmits, Timeouts uint64
}

// Run runs it. A connection that is lost is an error.
func (d degradation) Run() (DegradationResult, error) {
	w := world.New(world.Config{
		Topology: fmt.Sprintf("fat-tree:k=%d", d.K), Links: degradationLinks, Seed: d.Seed,
		Hosts: func(name string, c *stack.Config) {
			c.Policy = d.Policy
			c.Resequencer.MinHold = 500 * time.Microsecond // four packets' time
			if d.Hosts != nil {
				d.Hosts(name, c)
			}
		},
	})
	defer w.Close()
	t := w.Topology()
	var r DegradationResult
	var flows []*world.Flow
	for from, to := range permutation(t, d.Seed) {
		flows = append(flows, w.Flow(t.Node(topology.NodeID(from)).Name, t.Node(to).Name, world.Endless))
	}
	m := newMeter(w, degradationTick, flows...)
	d.schedule(w)
	half := make([]int64, len(flows))
	for i := range degradationPhases {
		middle, end := time.Duration(i)*d.Phase+d.Phase/2, time.Duration(i+1)*d.Phase
		if err := w.RunUntil(middle); err != nil {
			return r, d.failed(err)
		}
		for j, f := range flows {
			half[j] = f.Received
		}
		if err := w.RunUntil(end); err != nil {
			return r, d.failed(err)
		}
		for j, f := range flows {
			if f.Received == half[j] {
				r.Stuck++
			}
		}
		r.Steady[i] = m.rate(middle, end)
		if at, ok := m.reaches(0.95*r.Steady[i], end-d.Phase); ok {
			r.Recovered[i] = at - (end - d.Phase)
		}
	}
	for at := m.tick; at <= time.Duration(len(degradationPhases))*d.Phase; at += m.tick {
		r.Goodput = append(r.Goodput, m.rate(at-m.tick, at))
	}
	r.Connections = len(flows)
	for h := range t.Hosts() {
		s := w.Host(h.Name).Stats().TCP
		r.Retransmits += s.Retransmits
		r.Timeouts += s.Timeouts
	}
	return r, nil
}

// permutation returns for each host another to which it sends: a random one of
// the next pod, so that all packets cross the cores.
func permutation(t *topology.Topology, seed uint64) []topology.NodeID {
	rng := rand.New(rand.NewPCG(seed, 0x7065726d))
	n := t.NumHosts()
	next := 1 // the first host of pod 1, which is as many hosts on as pods have
	for len(t.Paths(0, topology.NodeID(next)).Bases) < 2 {
		next++
	}
	to := make([]topology.NodeID, 0, n)
	for first := 0; first < n; first += next {
		for _, j := range rng.Perm(next) {
			to = append(to, topology.NodeID((first+next+j)%n))
		}
	}
	return to
}

// schedule has the cores of each phase fail and heal, and who is told learn it.
func (d degradation) schedule(w *world.World) {
	for i, down := range degradationDown {
		t := w.Topology()
		for _, core := range down {
			n, _ := t.Lookup(core) // every fat-tree of four pods has them
			t = t.WithoutNode(n.ID)
		}
		w.At(time.Duration(i)*d.Phase, func() {
			for _, core := range []string{"3.0", "3.1"} {
				w.Heal(core)
			}
			for _, core := range down {
				w.Fail(core)
			}
		})
		if d.Learn >= 0 {
			w.At(time.Duration(i)*d.Phase+d.Learn, func() { w.SetTopology(t) })
		}
	}
}

func (d degradation) failed(err error) error {
	return fmt.Errorf("degradation of fat-tree:k=%d, %s, seed %d: %w", d.K, d.Policy, d.Seed, err)
}
