package drb

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

// f12Phase is what the paper shows of a part of Fig. 12.
type f12Phase struct {
	name  string
	from  float64 // seconds of the paper
	paper float64 // Gbit/s of all hosts
}

var f12Phases = []f12Phase{
	{"all up", 0, 52},
	{"3.0 off", 50, 44},
	{"3.0 and 3.1 off", 90, 38},
	{"3.1 back", 130, 44},
	{"3.0 back", 170, 52},
}

const f12End = 200 // seconds of the paper

func f12() papers.Experiment {
	return papers.Experiment{
		Name: "drb-f12", Source: paper + " §6.2, Fig. 12",
		Title: "bouncing switches fail and return on the testbed",
		Setting: settingOf(testbedSetting,
			papers.Parameter{Name: "failures", Value: "3.0 off at 50 s, 3.1 at 90; back at 130 and 170; all of a switch's links at once"},
			papers.Parameter{Name: "time", Value: "a tenth of the paper's: 20 s", Chosen: true, Why: "nothing changes between failures"},
			papers.Parameter{Name: "hosts know", Value: "100 ms after a failure or return", Chosen: true,
				Why: "a tenth of the paper's, whose throughput is stable after 1 to 2 s"}),
		Mutants:   []papers.Mutant{untold},
		Decisions: []papers.Decision{throughCores},
		Run:       runF12,
	}
}

func runF12(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	second, told := 100*time.Millisecond, 100*time.Millisecond // of the paper's, here
	if o.Quick {
		second, told = time.Millisecond, 5*time.Millisecond
		out.Settings = []papers.Parameter{{Name: "quick", Value: "a thousandth of the paper's time; hosts know after 5 ms"}}
	}
	at := func(s float64) time.Duration { return time.Duration(s * float64(second)) }
	c, err := testbed(o, "drb", true, times{duration: at(f12End)})
	if err != nil {
		return nil, err
	}
	first, err := linksOfCore(c.Topology, 0)
	if err != nil {
		return nil, err
	}
	next, err := linksOfCore(c.Topology, 1)
	if err != nil {
		return nil, err
	}
	c.Failures = []sim.Failure{
		{At: at(50), Links: first, Told: told},
		{At: at(90), Links: next, Told: told},
		{At: at(130), Links: next, Up: true, Told: told},
		{At: at(170), Links: first, Up: true, Told: told},
	}
	curve := throughput{hosts: c.Topology.NumHosts()}
	c.SampleEvery, c.OnSample = second/2, curve.sample
	_, hops, err := simulate(ctx, o, []sim.Config{c})
	if err != nil {
		return nil, err
	}
	out.PacketHops = hops

	var after []float64
	for i, p := range f12Phases {
		end := float64(f12End)
		if i+1 < len(f12Phases) {
			end = f12Phases[i+1].from
		}
		g := curve.mean(at(p.from+(end-p.from)/2), at(end))
		after = append(after, g)
		out.Rows = append(out.Rows, papers.Within(p.name, "goodput of all hosts, second half, Gbit/s", p.paper, g, 10))
		if i > 0 {
			out.Rows = append(out.Rows, papers.Info(p.name, "until within 10 % of that, ms after hosts know",
				float64(curve.settled(at(p.from)+told, at(end), g).Microseconds())/1000))
		}
	}
	out.Rows = append(out.Rows,
		papers.Order("goodput: all up > 3.0 off > both off", after[0], after[1], after[2]),
		papers.Order("goodput: 3.0 back > 3.1 back > both off", after[4], after[3], after[2]),
		// "removing one bouncing switch only reduces the capacity by 6-8Gbps": from 52 to 44, and
		// to 38.
		papers.Within("3.0 off", "goodput lost by it, Gbit/s", 8, after[0]-after[1], papers.Stated),
		papers.Within("3.0 and 3.1 off", "goodput lost by the second, Gbit/s", 6, after[1]-after[2], papers.Stated))
	out.Because = "With cores off ours is what the links that are left carry, 8/9 and 7/9 of 54 Gbit/s, and some traffic stays within pods, which no core carries; the paper's is up to a tenth below. Of its losses the first, 8 Gbit/s, is more than the 6 that one of nine cores carries. The dip after a failure lasts until hosts know and TCP's timeout, which is not shortened like the time, has passed."
	line := papers.Line{Name: "DRB"}
	for _, p := range curve.points {
		line.X = append(line.X, float64(p.at)/float64(second))
		line.Y = append(line.Y, p.gbits)
	}
	chart := papers.Chart{Title: "Fig. 12: failures", X: "seconds of the paper's", Y: "goodput of all hosts, Gbit/s", Lines: []papers.Line{line}}
	for i, p := range f12Phases {
		end := float64(f12End)
		if i+1 < len(f12Phases) {
			end = f12Phases[i+1].from
		}
		chart.State(line.Name, (p.from+3*end)/4, p.paper) // the middle of the second half
	}
	out.Charts = []papers.Chart{chart}
	return out, nil
}

// linksOfCore returns the links of DRB's 3.r.
func linksOfCore(t *topology.Topology, r int) ([]topology.LinkID, error) {
	for n := range t.Nodes() {
		if number, ok := t.CoreNumber(n.ID); ok && number == r {
			var links []topology.LinkID
			for _, p := range t.Ports(n.ID) {
				links = append(links, p.Link)
			}
			return links, nil
		}
	}
	return nil, fmt.Errorf("%v has no core 3.%d", t, r)
}

// throughput is what all hosts got, interval by interval.
type throughput struct {
	hosts  int
	points []point
	last   int64
	at     time.Duration
}

// point is the mean of an interval that ends at a time.
type point struct {
	at    time.Duration
	gbits float64
}

func (t *throughput) sample(now time.Duration, v sim.View) {
	var bytes int64
	for h := range topology.NodeID(t.hosts) {
		bytes += v.Delivered(h)
	}
	if now > t.at {
		t.points = append(t.points, point{now, float64(bytes-t.last) * 8 / float64(now-t.at)})
	}
	t.last, t.at = bytes, now
}

// mean is that of intervals within a time.
func (t *throughput) mean(from, to time.Duration) float64 {
	sum, n := 0.0, 0
	for _, p := range t.points {
		if p.at > from && p.at <= to {
			sum += p.gbits
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// settled is how long after a time the throughput enters within a tenth of what it
// will be.
func (t *throughput) settled(from, to time.Duration, final float64) time.Duration {
	for _, p := range t.points {
		if p.at > from && p.at <= to && p.gbits > 0.9*final && p.gbits < 1.1*final {
			return p.at - from
		}
	}
	return to - from
}
