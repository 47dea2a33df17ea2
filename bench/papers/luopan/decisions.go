package luopan

import (
	"cmp"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/policy"
)

// speaksOfLuopan are words of the labels of rows that luopan's own parameters move.
var speaksOfLuopan = []string{luopanScheme, "samples", "µs"}

// decisions are of what the paper leaves open in all of its experiments.
func decisions() []papers.Decision {
	return []papers.Decision{ageOfSamples(), acknowledgements(), betweenSamples(), byWindow(), byInitial(), byTimeout()}
}

// ageOfSamples has luopan's samples take just this long, and choices made by the racks'
// switches. With the probes' own round trips they are some 20 to 100 µs old.
func ageOfSamples() papers.Decision {
	d := papers.Decision{Parameter: "age of samples", About: speaksOfLuopan,
		Ends: "no sample is younger than timeless, and none is used that is older than a probe's round trip, 40 µs and what waits, and the expiry of 40 µs"}
	for _, age := range []time.Duration{0, 20 * time.Microsecond, 40 * time.Microsecond, 100 * time.Microsecond} {
		name := "timeless"
		if age > 0 {
			name = age.String()
		}
		d.Values = append(d.Values, papers.DecisionValue{Name: name, Tune: func(c *sim.Config) { takeSamplesAged(c, age) }})
	}
	return d
}

// takeSamplesAged makes luopan the switches', with the samples and the expiry that it has.
func takeSamplesAged(c *sim.Config, age time.Duration) {
	if c.Policy != luopanScheme {
		return
	}
	c.Spray = sim.SprayOptions{DrillSamples: c.Options.Samples, SampleAge: age}
	c.Policy, c.Options = timeless, policy.Options{Expiry: cmp.Or(c.Options.Expiry, expiryTime)}
}

func acknowledgements() papers.Decision {
	return papers.Decision{Parameter: "paths of acknowledgements", About: speaksOfLuopan,
		Ends: "they go by the scheme or by none; switches choose for every packet (§3.2)", Discrete: true,
		Values: []papers.DecisionValue{{Name: "each a random one", Tune: func(c *sim.Config) { c.AckUnits = false }}}}
}

// betweenSamples has what weft's hosts do, too: paths take turns, and each host samples for
// itself.
func betweenSamples() papers.Decision {
	return papers.Decision{Parameter: "luopan's rule between two samples", About: speaksOfLuopan,
		Ends: "the paper's rule, and both of weft's", Discrete: true,
		Values: []papers.DecisionValue{
			{Name: "samples alone (§3.2)", Tune: func(c *sim.Config) { c.Spray.SamplesOnly = true }},
			{Name: "weft's turns, a table per host", Tune: takeTurns},
		}}
}

func takeTurns(c *sim.Config) {
	if c.Policy == luopanScheme {
		c.Options.Expiry, c.Spray = 0, sim.SprayOptions{Turns: true}
	}
}

// byWindow, byInitial and byTimeout are of every scheme's TCP.
func byWindow() papers.Decision {
	return papers.Decision{Parameter: "TCP's window", About: speaksOfLuopan,
		Ends:   "from what there is without window scaling to more than the six ports of a path hold",
		Values: []papers.DecisionValue{papers.WindowOf("64 KB", 65_535), papers.WindowOf("2 MB", 2<<20)}}
}

func byInitial() papers.Decision {
	return papers.Decision{Parameter: "TCP's initial window", About: speaksOfLuopan, Ends: "ns-3 had 1 by default, and has 10",
		Values: []papers.DecisionValue{papers.InitialWindowOf("1 segment", 1)}}
}

func byTimeout() papers.Decision {
	d := papers.Decision{Parameter: "least retransmission timeout", About: speaksOfLuopan,
		Ends: "from the 200 µs that are stated of incast to the 1 s that ns-3 has by default"}
	for _, least := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		d.Values = append(d.Values, papers.TimeoutOf(least.String(), least, least))
	}
	return d
}
