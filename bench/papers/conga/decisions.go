package conga

import (
	"slices"

	"weft/bench/papers"
	"weft/bench/sim"
)

// buffers has ports with other room.
func buffers(about ...string) papers.Decision {
	d := papers.Decision{
		Parameter: "room of each port", About: about,
		Ends: "13 ms is the most that a path of three ports takes (§3.6), so there is no more; a 64th is 85 KB at 10 Gbit/s, a window of ten hosts' first packets",
	}
	for _, v := range []struct {
		name string
		part int
	}{{"a quarter", 4}, {"a 16th", 16}, {"a 64th", 64}} {
		d.Values = append(d.Values, papers.DecisionValue{Name: v.name, Tune: func(c *sim.Config) {
			c.Queues = slices.Clone(c.Queues)
			for i := range c.Queues {
				c.Queues[i].Bytes /= v.part
			}
		}})
	}
	return d
}

// ownConnections has other connections than those that are kept and lose their windows as
// they idle.
func ownConnections(about ...string) papers.Decision {
	return papers.Decision{
		Parameter: "connections", About: about,
		Ends: "a window cannot be forgotten sooner than after each flow, nor be wider than the receiver's",
		Values: []papers.DecisionValue{
			{Name: "one for each flow", Tune: func(c *sim.Config) { c.Connections = 0 }},
			{Name: "kept, with the receiver's whole window from the beginning and after idling", Tune: func(c *sim.Config) {
				c.TCP.InitialWindow = c.TCP.WindowBytes / 1460
			}},
		},
	}
}

// windows has greater and smaller ones than 1 MB.
func windows(about ...string) papers.Decision {
	return papers.Decision{Parameter: "greatest window of a connection", About: about,
		Ends:   "from what there is without window scaling to the 4 MB up to which Linux tunes it by default",
		Values: []papers.DecisionValue{papers.WindowOf("64 KB", 65_535), papers.WindowOf("256 KB", 256<<10), papers.WindowOf("4 MB", 4<<20)}}
}

// initialWindow is the testbed's, of whose kernel nothing is stated but that MPTCP's is v0.87, a
// Linux of 2013. That of the simulations is known.
func initialWindow(about ...string) papers.Decision {
	return papers.Decision{Parameter: "initial window", About: about, Ends: "10 packets since Linux 2.6.39 (2011), 3 before",
		Discrete: true,
		Values:   []papers.DecisionValue{papers.InitialWindowOf("3 packets", simulatedInitial)},
	}
}

// timestamps are TCP's, which the testbed's Linux has by default.
func timestamps(about ...string) papers.Decision {
	return papers.Decision{Parameter: "TCP's timestamps", About: about, Ends: "connections have them or not",
		Discrete: true,
		Values:   []papers.DecisionValue{{Name: "as Linux has them by default", Tune: func(c *sim.Config) { c.TCP.Timestamps = true }}},
	}
}

// longer has flows arrive for longer. The failure's run asks Options.As of its name.
var longer = papers.Decision{
	Parameter: "time in which flows arrive", About: []string{"ECMP", "CONGA", "hotspot"},
	Values: []papers.DecisionValue{{Name: "1 s", Replace: map[string]string{usualArrivals: longArrivals}}},
}

// The names of the times of the failure's run.
const (
	usualArrivals = "arrivals until 400 ms"
	longArrivals  = "arrivals until 1 s"
)
