// Package units compares units in simulated time: what policy auto takes for a link's rate,
// against flowcells of 64 KB and packets, over rates of links, numbers of paths and
// connections.
//
// One host sends to another, over as many spines as there are paths. The hosts' own links are
// twice as fast as all paths together, but at most 10 Tbit/s, the fastest that a topology has. So the
// paths' queues are those that fill. TCP is the simulator's, CUBIC with selective acknowledgements;
// receivers restore the order under every policy, as Hosts and gateways do. All windows together are twice what the paths and their
// queues hold, so that queues overflow at every rate, but no connection loses a window several
// times as large as its share: the simulator's TCP notices only by a timeout that what it sent
// again was lost again. Processors are not simulated: what a unit costs a sender, weft bench
// throughput measures.
package units

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/bench/stats"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// Policies are those that are compared: auto, and the fixed units between which it chooses, in
// its own order over the paths.
var Policies = []string{policy.Default, "flowcell-drb", "drb"}

// Setting is one cell of the sweep.
type Setting struct {
	RateMbit    float64 // of each link between switches, Mbit/s
	Paths       int
	Connections int // that send without end
}

// Result is what became of a Setting.
type Result struct {
	Setting
	Unit  string             // that auto takes
	Ideal map[string]float64 // goodput by policy, in percent of what the links carry
}

// OfBest is auto's goodput in percent of that of the best of the others; 0 if these
// have none.
func (r Result) OfBest() float64 {
	best := 0.0
	for _, p := range Policies[1:] {
		best = max(best, r.Ideal[p])
	}
	if best <= 0 {
		return 0
	}
	return 100 * r.Ideal[Policies[0]] / best
}

const (
	mss, headers = 1460, 40
	// roundTrip is that of packets that meet no queue, in seconds.
	roundTrip = 45e-6
	// queueBytes is a port's queue, or what a link carries in a round trip if that is more.
	queueBytes = 128 << 10
	// maxWindow is the simulator's largest, bytes.
	maxWindow = 4 << 20
)

// A run takes twice the span: half of it to begin. The span has from leastPackets (onePath for
// each path, if that is more: some twenty queues) to mostPackets, and between the two it is
// usualSpan. So what a cell takes to simulate hardly depends on the rate.
const (
	leastPackets = 30_000
	onePath      = 2_000
	mostPackets  = 500_000
	usualSpan    = 20 * time.Millisecond
)

func (s Setting) span() time.Duration {
	total := s.RateMbit * float64(s.Paths) // Mbit/s
	packets := func(n float64) time.Duration {
		return time.Duration(n * (mss + headers) * 8 / total * float64(time.Microsecond))
	}
	return max(packets(max(leastPackets, onePath*float64(s.Paths))), min(usualSpan, packets(mostPackets)))
}

// rounds is how many runs, each with a seed of its own, a figure is the median of.
const rounds = 3

// Run measures a Setting under all Policies. The result depends on the arguments alone.
func Run(ctx context.Context, s Setting, seed uint64) (Result, error) {
	r := Result{Setting: s, Ideal: make(map[string]float64)}
	auto, err := policy.New(policy.Default, policy.Options{})
	if err != nil {
		return r, err
	}
	r.Unit = auto.At(policy.Options{}.Rate(s.RateMbit)).Unit.String()
	for _, name := range Policies {
		var all []float64
		for i := range uint64(rounds) {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			one, err := s.run(name, seed+i)
			if err != nil {
				return r, fmt.Errorf("%+v, policy %s: %w", s, name, err)
			}
			all = append(all, one)
		}
		r.Ideal[name] = stats.Median(all)
	}
	return r, nil
}

// mostHostRate is the fastest link of a topology, Mbit/s.
const mostHostRate = 10_000_000

func (s Setting) fabric() string {
	host := min(2*s.RateMbit*float64(s.Paths), mostHostRate)
	return fmt.Sprintf("leaf-spine:leaves=2,spines=%d,hosts=1,host-rate=%g,fabric-rate=%g", s.Paths, host, s.RateMbit)
}

// run returns the goodput in percent of ideal.
func (s Setting) run(name string, seed uint64) (float64, error) {
	total := s.RateMbit * float64(s.Paths) // Mbit/s
	t, err := topology.Parse(s.fabric())
	if err != nil {
		return 0, err
	}
	warm := s.span()
	order := resequencer.Config{}
	packet := time.Duration((mss + headers) * 8 / s.RateMbit * float64(time.Microsecond))
	order.MinHold, order.Hold = max(resequencer.DefaultMinHold, 4*packet), max(resequencer.DefaultHold, 16*packet)
	inTrip := s.RateMbit * 1e6 / 8 * roundTrip // bytes by one path
	queue := max(queueBytes, inTrip)
	window := 2 * float64(s.Paths) * (inTrip + queue) / float64(s.Connections)
	r, err := sim.Run(sim.Config{
		Topology: t, Seed: seed, Policy: name, Resequencer: &order,
		Duration: 2 * warm, Warmup: warm, Delay: 5 * time.Microsecond,
		Queues:   []sim.Queue{{Bytes: int(queue)}},
		TCP:      tcp.Config{MSS: mss, HeaderBytes: headers, WindowBytes: int(min(maxWindow, max(10*mss, window)))},
		Workload: s.flows(warm/4, seed),
	})
	if err != nil {
		return 0, err
	}
	bits := float64(r.DeliveredBytes[1]) * 8
	return 100 * bits / ((r.End - warm).Seconds() * total * 1e6 * mss / (mss + headers)), nil
}

// endless are flows, in the order of their start, that do not end.
type endless []workload.Flow

func (e *endless) Next() (f workload.Flow, ok bool) {
	if len(*e) == 0 {
		return f, false
	}
	f, *e = (*e)[0], (*e)[1:]
	return f, true
}

func (e *endless) Done(workload.Flow, time.Duration, func(workload.Flow)) {}

// flows are from the first host to the other one, and begin at random times before latest.
func (s Setting) flows(latest time.Duration, seed uint64) *endless {
	r := rand.New(rand.NewPCG(seed, 0x756e697473))
	var all endless
	for range s.Connections {
		all = append(all, workload.Flow{Start: time.Duration(r.Int64N(int64(latest))), Src: 0, Dst: 1})
	}
	slices.SortFunc(all, func(a, b workload.Flow) int { return cmp.Compare(a.Start, b.Start) })
	return &all
}
