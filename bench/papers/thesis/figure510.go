package thesis

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
)

var estimateSetting = []papers.Parameter{
	stated("buffer behind the bump", "40 KB"),
	chosen("bump", "takes with each packet what Table 5.2 says: 30 µs on average, 42, 83 and 169 at the 95th, 99th and 99.9th percentile, each packet by itself, none overtaking", "the table does not say how times follow one another"),
	chosen("virtual queue", "has the room of the port, and drains at its rate", "it is as long as the port's own again whenever either is full or empty (§5.2.2)"),
	testbedSetting[4], testbedSetting[5],
}

// under are the labels' words of shares.
const under = "difference within %d MTU"

// estimates is the time that is simulated.
func estimates(o papers.Options, out *papers.Outcome) time.Duration {
	return shorter(o, out, 2*time.Second)
}

// estimateQueue is that of a bump, or what stands for it.
func estimateQueue(o papers.Options, rateMbit float64) aqm.VirtualQueue {
	q := aqm.VirtualQueue{RateMbit: rateMbit, Room: estimateBuffer}
	if o.As("room") == "" {
		q.Room = 0
	}
	if o.As("rate") == "" {
		q.RateMbit *= .9
	}
	return q
}

// record runs a simulation for what comes to its port.
func record(ctx context.Context, o papers.Options, out *papers.Outcome, rateMbit float64, flows int) ([]passing, error) {
	c, r, err := recorded(o, rateMbit, flows, estimates(o, out))
	if err != nil {
		return nil, err
	}
	results, err := papers.Sweep(ctx, o, []sim.Config{c})
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	return r.list, nil
}

// timesFollow is of Table 5.2, which has percentiles alone. That all times are the same is no
// value: then the port has the very packets of the estimate, 100 % whatever it does. The
// millisecond is ours. They are fits: the longer times are the same, the larger the figure, and nothing
// says where to stop.
var timesFollow = fitted(papers.Decision{
	Parameter: "sequence of a bump's times", About: []string{"difference"},
	Values: []papers.DecisionValue{
		{Name: "the same within 100 µs", Replace: map[string]string{"times": "100us"}},
		{Name: "the same within a millisecond", Replace: map[string]string{"times": "1ms"}},
		{Name: "the same within 10 ms", Replace: map[string]string{"times": "10ms"}},
		{Name: "the same within 100 ms", Replace: map[string]string{"times": "100ms"}},
	},
})

// alike is for how long a bump takes the same time.
func alike(o papers.Options) time.Duration {
	d, err := time.ParseDuration(o.As("times"))
	if err != nil { // by its name: each packet takes its own
		return 0
	}
	return d
}

func figure510() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.10", Source: "thesis §5.5.2, Fig. 5.10",
		Title: "a bump's estimate of the queue behind it",
		Setting: append([]papers.Parameter{
			stated("traffic", "one TCP flow between hosts of 10 Gbit/s through a port of 1 Gbit/s"),
			chosen("compared", "behind each packet: the virtual queue when the bump takes it, and the port's when it comes there", "the thesis has two machines' time stamps and does not say how it joined them"),
		}, estimateSetting...),
		Mutants: []papers.Mutant{
			{Name: "the virtual queue has no bound", About: []string{"difference"}, Replace: map[string]string{"room": ""}},
			{Name: "the virtual queue drains at 90 % of the rate", About: []string{"difference"}, Replace: map[string]string{"rate": ""}},
		},
		Decisions: []papers.Decision{timesFollow, {
			Parameter: "pairs of lengths that are compared", About: []string{"difference"},
			Ends: "lengths of the same packet, or of the same time", Discrete: true,
			Values: []papers.DecisionValue{{Name: "at the same time", Replace: map[string]string{"compared": "time"}}},
		}},
		Run: runFigure510,
	}
}

func runFigure510(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const rate = 1000
	out := &papers.Outcome{}
	list, err := record(ctx, o, out, rate, 1)
	if err != nil {
		return nil, err
	}
	behind := forwarded(list, alike(o), o.Seed)
	actual := lengths(behind, aqm.VirtualQueue{RateMbit: rate, Room: estimateBuffer})
	estimate := lengths(list, estimateQueue(o, rate))
	if o.As("compared") == "time" {
		estimate = lengthsAt(list, estimateQueue(o, rate), behind)
	}
	d := apart(actual, estimate)
	out.Rows = []papers.Row{
		papers.Within(fmt.Sprintf(under, 2), "% of packets", 95, percentWithin(d, 2*mtu), tolerance),
		papers.Info("difference, mean", "bytes", meanOf(d)),
		papers.Info("the port's queue, mean", "bytes", meanOf(actual)),
	}
	explain(out, o, "the more a bump's times differ from packet to packet, the more packets reach a full port in another order of full and free than the virtual queue thinks, and one that only one of the two drops keeps them apart until either is full or empty again; the thesis gives percentiles of the times, not how they follow one another")
	out.Charts = []papers.Chart{{Title: "Fig. 5.10 (b)", X: "difference, bytes", Y: "share of packets", Lines: []papers.Line{papers.CDF("ours", d)}}}
	return out, nil
}

// updateLate is how late the other bump's updates are (thesis Fig. 5.11).
const updateLate = 25 * time.Microsecond

func figure511() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.11", Source: "thesis §5.5.2, Fig. 5.11",
		Title: "a bump's estimate of a queue that two bumps fill, when the other one's updates are late",
		Setting: append([]papers.Parameter{
			stated("traffic", "two TCP flows, 5 Gbit/s together"),
			stated("updates", "of one flow 25 µs late"),
			stated("compared", "the estimate with late updates, and the one with updates in time"),
			chosen("how the rate is limited", "by the port that both flows share, behind hosts of 10 Gbit/s", "not stated"),
			chosen("always", "is 100 % of the packets of both flows, when they come", "the thesis: the difference was always under 2 MTU. Our first version let a tenth of the packets break that"),
		}, estimateSetting...),
		Mutants: []papers.Mutant{{Name: "updates are 1 ms late", About: []string{"difference"}, Replace: map[string]string{"updates": "1ms"}}},
		Decisions: []papers.Decision{{
			// A machine downstream records the times of frames (§5.5.2), which may be behind the
			// place where the rate is limited, and the late updates are made of these times.
			Parameter: "place where times are recorded", About: []string{"difference"},
			Ends: "in front of the port that limits the rate, or behind it", Discrete: true,
			Values: []papers.DecisionValue{{Name: "behind the port", Replace: map[string]string{"recorded": "behind"}}},
		}, senderHosts, hostRates},
		Run: runFigure511,
	}
}

// senderHosts is from where the two flows of Fig. 5.11 come. "We ran iperf sessions between two
// hosts, connected in series by a NetBump and another pass-through machine" (§5.5.2): then both
// are one host's. A bump of two racks has flows of several.
var senderHosts = papers.Decision{
	Parameter: "hosts that send the two flows", About: []string{"difference"},
	Ends: "one or two", Discrete: true,
	Values: []papers.DecisionValue{{Name: "one", Replace: map[string]string{"senders": "1"}}},
}

// hostRates are of the two senders of Fig. 5.11, of which the thesis says only that they are
// limited to 5 Gbit/s together. That this rate brings the row from 47 % to 99.99 was known
// before it was tried here, so it is a fit. 2.5 Gbit/s each are no value: nothing waits at the
// port then, and 100 % come out however late updates are.
var hostRates = papers.Decision{
	Parameter: "rate of each of the two hosts", About: []string{"difference"},
	Values: []papers.DecisionValue{{Name: "5 Gbit/s", Replace: map[string]string{hostRate: "5000"}, Fitted: true}},
}

func runFigure511(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const rate = 5000
	out := &papers.Outcome{}
	list, err := record(ctx, o, out, rate, 2)
	if err != nil {
		return nil, err
	}
	if o.As("recorded") == "behind" {
		list = sent(list, rate, estimateBuffer)
	}
	late := updateLate
	if as := o.As("updates"); as != "updates" {
		if late, err = time.ParseDuration(as); err != nil {
			return nil, err
		}
	}
	other := list[len(list)-1].flow
	q := estimateQueue(o, rate)
	d := apart(lengths(list, q), lengthsAt(later(list, other, late), q, list))
	out.Rows = []papers.Row{
		papers.AtLeast(fmt.Sprintf(under, 2), "% of packets", 100, percentWithin(d, 2*mtu), 0),
		papers.Info("difference, mean", "bytes", meanOf(d)),
		papers.Info("difference, most", "bytes", quantile(d, 1)),
	}
	explain(out, o, "the late estimate lacks what one flow has sent within 25 µs, and drops other packets than the one in time; how far they are apart depends on how bursts come to the port, so on where and how the rate is limited, which the thesis does not say: behind hosts of 5 Gbit/s they are closer, where times are taken behind the port they are not")
	out.Charts = []papers.Chart{{Title: "Fig. 5.11", X: "difference, bytes", Y: "share of packets", Lines: []papers.Line{papers.CDF("ours", d)}}}
	return out, nil
}

// updateBatch is how many packets an update tells of where they are batched.
const updateBatch = 32

func figure512() papers.Experiment {
	return papers.Experiment{
		Name: "thesis-f5.12", Source: "thesis §5.5.2, Figs. 5.12 and 5.13",
		Title: "a bump's estimate of a queue by updates of another bump alone",
		Setting: append([]papers.Parameter{
			stated("traffic", "one TCP flow between hosts of 10 Gbit/s through a port of 1 Gbit/s"),
			stated("updates", "among the packets themselves, one for each packet"),
			chosen("an update", "leaves the other bump with its packet, and takes as long through this one", "§5.2.2: in-band"),
			chosen("compared", "the estimate and the port's queue at the times of packets at the port", "this bump sees no packet that could be compared"),
			chosen("batches", "of 32 packets", "the thesis: estimates drift when updates are batched, without a figure"),
		}, estimateSetting...),
		Mutants:   []papers.Mutant{{Name: "the bump hears of no packet", About: []string{"difference"}, Replace: map[string]string{"updates": ""}}},
		Decisions: []papers.Decision{timesFollow},
		Run:       runFigure512,
	}
}

func runFigure512(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	const rate = 1000
	out := &papers.Outcome{}
	list, err := record(ctx, o, out, rate, 1)
	if err != nil {
		return nil, err
	}
	behind := forwarded(list, alike(o), o.Seed)
	actual := lengths(behind, aqm.VirtualQueue{RateMbit: rate, Room: estimateBuffer})
	heard := forwarded(behind, alike(o), derive(o.Seed, 1))
	if o.As("updates") == "" {
		heard = nil
	}
	q := estimateQueue(o, rate)
	each := apart(actual, lengthsAt(heard, q, behind))
	batch := apart(actual, lengthsAt(batched(heard, updateBatch), q, behind))
	within := percentWithin(each, 3*mtu)
	out.Rows = []papers.Row{
		papers.Within(fmt.Sprintf(under, 3), "% of packets", 90, within, tolerance),
		papers.Order(fmt.Sprintf("difference within 3 MTU: an update for each packet > one for %d", updateBatch), within, percentWithin(batch, 3*mtu)),
		papers.Info("difference, mean", "bytes", meanOf(each)),
		papers.Info(fmt.Sprintf("difference, updates for %d packets, mean", updateBatch), "bytes", meanOf(batch)),
	}
	explain(out, o, "as in Fig. 5.10: the more the times of two bumps differ from packet to packet, the further apart the estimate and the port are")
	out.Charts = []papers.Chart{{Title: "Fig. 5.12", X: "difference, bytes", Y: "share of packets",
		Lines: []papers.Line{papers.CDF("an update for each packet", each), papers.CDF(fmt.Sprintf("for %d packets", updateBatch), batch)}}}
	return out, nil
}
