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
	return []papers.Decision{ageOfSamples(), acknowledgements(), betweenSamples()}
}

// ageOfSamples has luopan's samples take just this long, and choices made by the racks'
// switches. With the probes' own round trips they are some 20 to 100 µs old.
func ageOfSamples() papers.Decision {
	d := papers.Decision{Parameter: "age of samples", About: speaksOfLuopan,
		Ends: "no sample is younger than timeless, and with 100 µs, two and a half round trips of the empty fabric, luopan is worse than random"}
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
		Values: []papers.DecisionValue{{Name: "each a random one", Tune: func(c *sim.Config) { c.AckUnits = false }}}}
}

// betweenSamples has what weft's hosts do, too: paths take turns, and each host samples for
// itself.
func betweenSamples() papers.Decision {
	return papers.Decision{Parameter: "luopan's rule between two samples", About: speaksOfLuopan,
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
