package drill

import (
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
)

// all are words one of which is in the label of every row of the paper's.
var all = []string{"ECMP", "CONGA", "Presto", "DRILL", "Random", "RR", "FCT", "wait"}

// The parameters that the paper leaves open, for the experiments with its trace.
var (
	// byTraffic has no Ends: how many leaves send is one axis of the trace's pattern, which has
	// racks of one service, hot racks and local traffic, too.
	byTraffic = papers.Decision{
		Parameter: "traffic", About: all,
		Values: []papers.DecisionValue{as(quarter, anyToAny), as(quarter, half), as(quarter, eighth)},
	}
	bySizes = papers.Decision{
		Parameter: "flow sizes", About: all,
		Ends: "from no more flows of one segment than in the distribution itself (34 %) to as many as among memcached's messages (97 %), and the other ones of Roy et al.",
		Values: []papers.DecisionValue{
			as(sizes, mostlySmall), as(sizes, nearlySmall), as(sizes, smallest),
			as(sizes, "fb_hadoop_all"), as(sizes, "fb_cachefollower_intracluster"), as(sizes, "fb_memcached_rpc"),
		},
	}
	byEnds = papers.Decision{
		Parameter: "last segments", About: all, Ends: "there is no third way", Discrete: true,
		Values: []papers.DecisionValue{as(wholeEnds, shortEnds)},
	}
	// byBuffer has no Ends: no buffer that the ports of a switch share is tried.
	byBuffer = papers.Decision{
		Parameter: "buffer of each port", About: all,
		Values: []papers.DecisionValue{buffers("50 frames", 50), buffers("200 frames", 200), buffers("400 frames", 400), buffers("1,000 frames", 1000)},
	}
	byWindow = papers.Decision{
		Parameter: "TCP's window", About: all,
		Values: []papers.DecisionValue{
			{Name: "256 KB", Tune: func(c *sim.Config) { c.TCP.WindowBytes = 256 << 10 }},
			{Name: "17,520 bytes", Tune: func(c *sim.Config) { c.TCP.WindowBytes = 17_520 }},
		},
	}
	byInitial = papers.Decision{
		Parameter: "TCP's initial window", About: all, Ends: "from Linux 2.6's 3 to 2.6.39's 10",
		Values: []papers.DecisionValue{{Name: "10 segments", Tune: func(c *sim.Config) { c.TCP.InitialWindow = 10 }}},
	}
	// byTimeout has no Ends: the lesser value, 1 ms, is still 8 full queues at 10 Gbit/s.
	byTimeout = papers.Decision{
		Parameter: "least retransmission timeout", About: all,
		Values: []papers.DecisionValue{timeouts("1 ms", time.Millisecond), timeouts("200 ms", 200*time.Millisecond)},
	}
)

// open are those parameters.
func open(more ...papers.Decision) []papers.Decision {
	return append([]papers.Decision{byTraffic, bySizes, byBuffer, byWindow, byTimeout}, more...)
}

// as is the value that another name stands for.
func as(name, other string) papers.DecisionValue {
	return papers.DecisionValue{Name: other, Replace: map[string]string{name: other}}
}

// fitted is a value that was looked for until it gave the paper's figure, or is against its words.
func fitted(v papers.DecisionValue) papers.DecisionValue {
	v.Fitted = true
	return v
}

func buffers(name string, frames int) papers.DecisionValue {
	return papers.DecisionValue{Name: name, Tune: func(c *sim.Config) { c.Queues = []sim.Queue{{Bytes: frames * frameBytes}} }}
}

func timeouts(name string, least time.Duration) papers.DecisionValue {
	return papers.DecisionValue{Name: name, Tune: func(c *sim.Config) { c.TCP.RTOMin, c.TCP.RTOInitial = least, 0 }}
}
