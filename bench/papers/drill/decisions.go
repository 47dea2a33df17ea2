package drill

import (
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

// all are words one of which is in the label of every row of the paper's.
var all = []string{"ECMP", "CONGA", "Presto", "DRILL", "Random", "RR", "FCT", "wait"}

// The parameters that the paper leaves open, for the experiments with its trace. Those with
// Ends span all that is plausible, one at a time.
var (
	// bySenders is one axis of the trace's pattern, which has racks of one service, hot racks and
	// local traffic, too. All other values contradict where the paper's packets wait.
	bySenders = papers.Decision{
		Parameter: "part of the leaves that sends", About: all, Against: whereTheyWait,
		Values: []papers.DecisionValue{fitted(as(quarter, anyToAny)), fitted(as(quarter, half)), fitted(as(quarter, eighth)), fitted(as(quarter, sixteenth))},
	}
	bySizes = papers.Decision{
		Parameter: "flow sizes", About: all,
		Ends: "from no more flows of one segment than in the distribution itself (34 %) to as many as among memcached's messages (97 %), and the other ones of Roy et al.",
		Values: []papers.DecisionValue{
			as(sizes, mostlySmall), as(sizes, nearlySmall), as(sizes, smallest),
			as(sizes, "fb_hadoop_all"), as(sizes, "fb_cachefollower_intracluster"), fitted(as(sizes, messages)), // for a 16th of the time
		},
	}
	byEnds = papers.Decision{
		Parameter: "last segments", About: all, Ends: "there is no third way", Discrete: true,
		Values: []papers.DecisionValue{as(wholeEnds, shortEnds)},
	}
	// byBuffer has no buffer that ports share: INET's switches have a queue for each.
	byBuffer = papers.Decision{
		Parameter: "buffer of each port", About: all,
		Ends: "from 25 frames, which the first windows of nine flows fill, to without end",
		Values: []papers.DecisionValue{
			buffers("25 frames", 25), buffers("50 frames", 50), buffers("200 frames", 200), buffers("400 frames", 400),
			buffers("1,000 frames", 1000), buffers("without end", unbounded),
		},
	}
	// byWindow has values that were known to give the paper's orders: the experiments had 256 KB once.
	byWindow = papers.Decision{
		Parameter: "TCP's window", About: all,
		Ends:   "from 12 segments, as many as Linux 2.6 offers a connection that begins, to 1 MB, as much as the largest flow has",
		Values: []papers.DecisionValue{papers.WindowOf("17,520 bytes", 17_520), fitted(papers.WindowOf("256 KB", 256<<10)), fitted(papers.WindowOf("1 MB", 1<<20))},
	}
	byInitial = papers.Decision{
		Parameter: "TCP's initial window", About: all, Ends: "from Linux 2.6's 3 to 2.6.39's 10",
		Values: []papers.DecisionValue{papers.InitialWindowOf("10 segments", 10)},
	}
	byTimeout = papers.Decision{
		Parameter: "least retransmission timeout", About: all,
		Ends: "from 200 µs, less than two full ports take at 10 Gbit/s, to Linux's 200 ms",
		Values: []papers.DecisionValue{
			papers.TimeoutOf("200 µs", 200*time.Microsecond, 0), papers.TimeoutOf("1 ms", time.Millisecond, 0), papers.TimeoutOf("200 ms", 200*time.Millisecond, 0),
		},
	}
)

// whereTheyWait is what the part of the leaves that sends was fitted to.
const whereTheyWait = "\"there is negligible queuing at hop 2\", and hop 1 has 54 % of ECMP's wait at load 0.8 (§4, Fig. 6)"

// open are those parameters.
func open(more ...papers.Decision) []papers.Decision {
	return append([]papers.Decision{bySenders, byBursts, byBurstsOfAll, bySizes, byBuffer, byWindow, byInitial, byTimeout}, more...)
}

// ofTCP are those of them that experiments without the trace have, too.
func ofTCP(about ...string) []papers.Decision {
	return []papers.Decision{speaking(byBuffer, about...), speaking(byWindow, about...), speaking(byInitial, about...), speaking(byTimeout, about...)}
}

// speaking is a decision that speaks of other rows.
func speaking(d papers.Decision, of ...string) papers.Decision {
	d.About = of
	return d
}

// byPaths has DRILL spread packets over all paths, not over symmetric ones alone.
var byPaths = papers.Decision{
	Parameter: "paths over which DRILL spreads packets", About: []string{"DRILL"},
	Against: "\"each switch follows a two step process for forwarding each packet\": it hashes a flow to a component, and balances \"across its symmetric paths\" (§3.4.2)",
	Values:  []papers.DecisionValue{fitted(papers.DecisionValue{Name: "all", Replace: map[string]string{drill.policy: drillAll.policy}})},
}

// as is the value that another name stands for.
func as(name, other string) papers.DecisionValue {
	return papers.DecisionValue{Name: other, Replace: map[string]string{name: other}}
}

// fitted is a value that decides nothing: see papers.DecisionValue.Fitted.
func fitted(v papers.DecisionValue) papers.DecisionValue {
	v.Fitted = true
	return v
}

func buffers(name string, frames int) papers.DecisionValue {
	return papers.DecisionValue{Name: name, Tune: func(c *sim.Config) { c.Queues = []sim.Queue{{Bytes: frames * frameBytes}} }}
}

// unbounded is more frames than ever wait.
const unbounded = 1 << 19
