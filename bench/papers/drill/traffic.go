package drill

import (
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim/workload"
	"weft/topology"
)

// Who sends to whom. A Decision replaces quarter by another one.
const (
	quarter   = "hosts of every fourth leaf, to those of all other leaves"
	half      = "hosts of every second leaf, to those of all other leaves"
	eighth    = "hosts of every eighth leaf, to those of all other leaves"
	sixteenth = "hosts of every sixteenth leaf, to those of all other leaves"
	anyToAny  = "any host, to any of another leaf"
)

// everyLeaf is of how many leaves one sends; where all do, they receive as well.
var everyLeaf = map[string]int{quarter: 4, half: 2, eighth: 8, sixteenth: 16, anyToAny: 1}

// Sizes of flows besides a distribution's own: the part of flows of a segment at most is
// another one, and of the larger flows one is as frequent as before beside another.
const (
	mostlySmall = sizes + ", 80 % of flows of one segment"
	nearlySmall = sizes + ", 90 % of flows of one segment"
	smallest    = sizes + ", 95 % of flows of one segment"
	twoMB       = "2 MB each"
	messages    = "fb_memcached_rpc" // 97 % of them one segment
)

var smallFlows = map[string]float64{mostlySmall: .8, nearlySmall: .9, smallest: .95}

// cdf is a distribution of flow sizes by its name.
func cdf(name string) (*workload.CDF, error) {
	if name == twoMB {
		return workload.Fixed(2_000_000), nil
	}
	part, ok := smallFlows[name]
	if !ok {
		return workload.LoadCDF(name)
	}
	c, err := workload.LoadCDF(sizes)
	if err != nil {
		return nil, err
	}
	return c.WithPart(segment, part), nil
}

// senders are the hosts that send where one of so many leaves does, those that receive,
// nil for all of other racks, and what the live links from the leaves of the former to
// spines carry, in Mbit/s, or the hosts' if that is less.
func senders(t *topology.Topology, every int) (from, to []topology.NodeID, mbit float64) {
	up, down := 0.0, 0.0
	for i, host := range racksOf(t) {
		rack := workload.RackOf(t, host)
		if i%every != 0 {
			to = append(to, rack...)
			continue
		}
		from = append(from, rack...)
		for _, p := range t.Ports(t.EdgeOf(host)) {
			switch {
			case !p.Up:
				down += t.Rate(p.Link)
			case t.Live(p.Link):
				up += t.Rate(p.Link)
			}
		}
	}
	return from, to, min(up, down)
}

// traffic is who sends what between racks.
type traffic struct{ senders, sizes, atOnce string } // names

// trafficOf is the traffic of experiments with the paper's trace.
func trafficOf(o papers.Options) traffic { return traffic{o.As(quarter), o.As(sizes), o.As(alone)} }

// between is Poisson traffic between racks at a load of what the senders' leaves can send
// up.
func between(t *topology.Topology, who traffic, load float64, until time.Duration, seed uint64) (workload.Source, error) {
	every, ok := everyLeaf[who.senders]
	if !ok {
		return nil, fmt.Errorf("drill: nobody knows who %q are", who.senders)
	}
	n, ok := burstOf[who.atOnce]
	if !ok {
		return nil, fmt.Errorf("drill: nobody knows how many begin: %q", who.atOnce)
	}
	flows, err := cdf(who.sizes)
	if err != nil {
		return nil, err
	}
	from, receivers, mbit := senders(t, every)
	to := workload.Among(receivers)
	if len(receivers) == 0 {
		if to, err = workload.Uniform(t, workload.OtherRack); err != nil {
			return nil, err
		}
	}
	c := workload.PoissonConfig{
		Senders: from, To: to, Sizes: flows, Until: until, Seed: seed,
		PerSecond: workload.FlowsPerSecond(load, mbit, flows),
	}
	if n > 1 {
		return newBursts(t, c, n)
	}
	return workload.NewPoisson(c)
}

// wholeEnds is the name of what wholeSegments does, and shortEnds of its absence.
const (
	wholeEnds = "flows of more than a segment are of whole segments"
	shortEnds = "the last segment of a flow is what is left"
)

// wholeSegments rounds flows of more than a segment up to whole segments.
type wholeSegments struct{ workload.Source }

func (w wholeSegments) Next() (workload.Flow, bool) {
	f, ok := w.Source.Next()
	if f.Bytes > segment {
		f.Bytes = (f.Bytes + segment - 1) / segment * segment
	}
	return f, ok
}

// traced is what the experiments with the paper's trace share besides setting.
func traced(more ...papers.Parameter) []papers.Parameter {
	return setting(append([]papers.Parameter{
		chosen("traffic", quarter, "fitted: the paper finds negligible queueing at hop 2, and hop 1's part of ECMP's wait 54 % at load 0.8. In traffic from any host to any other both hops are equal by symmetry. Hop 1's part is 16, 16, 51 and 73 % if 1, 1/2, 1/4 and 1/8 of the leaves send (one seed), and hop 2 is nearly empty with the latter two. So these two figures are no evidence"),
		chosen("last segments", wholeEnds, "inferred from the paper's \"under 20 % load, less than 0.8 % of flows receive any duplicate ACKs under any of these schemes\": a last segment that is short overtakes the one before by another path, as switches store and forward, so a third of the flows would"),
	}, more...)...)
}
