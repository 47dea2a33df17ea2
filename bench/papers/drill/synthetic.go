package drill

import (
	"context"
	"fmt"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/workload"
	"weft/bench/stats"
	"weft/topology"
)

// Of Table 1.
const (
	mouseBytes = 50_000
	mouseEvery = 100 * time.Millisecond
	seeds      = 4 // permutations, phases and hashes
)

// pattern is a column of Table 1, with what the paper has, normalised to ECMP.
type pattern struct {
	name string
	// elephants returns who sends to whom.
	elephants func(t *topology.Topology, seed uint64, o papers.Options) (workload.Source, error)
	time      time.Duration // of a run; 0: until all elephants have ended
	paper     [3][3]float64 // throughput, mean and p99.99, by CONGA, Presto, DRILL
}

var patterns = []pattern{
	{"stride(8)", strided, 600 * time.Millisecond, [3][3]float64{{1.55, 1.71, 1.8}, {.51, .41, .21}, {.2, .15, .04}}},
	{"bijection", permuted, 600 * time.Millisecond, [3][3]float64{{1.46, 1.62, 1.78}, {.71, .63, .45}, {.22, .18, .08}}},
	{"shuffle", shuffled, 0, [3][3]float64{{1, 1.1, 1.1}, {.95, .91, .86}, {.86, .79, .68}}},
}

// endless has hosts send to one destination each for ever.
func endless(t *topology.Topology, to []topology.NodeID, seed uint64) (workload.Source, error) {
	return workload.NewClosed(workload.ClosedConfig{
		Senders: workload.Hosts(t), To: workload.To(to), Rounds: 1, Spread: 10 * time.Millisecond, Class: elephant, Seed: seed,
	})
}

func strided(t *topology.Topology, seed uint64, _ papers.Options) (workload.Source, error) {
	to, err := workload.Stride(t, 8)
	if err != nil {
		return nil, err
	}
	return endless(t, to, seed)
}

func permuted(t *topology.Topology, seed uint64, _ papers.Options) (workload.Source, error) {
	to, err := workload.Permutation(t, workload.OtherRack, seed)
	if err != nil {
		return nil, err
	}
	return endless(t, to, seed)
}

// shuffleBytes are of an elephant of the shuffle, where they have to end.
const shuffleBytes = 2_000_000

// shuffleTime is how long there are mice: a little less than a shuffle takes.
const shuffleTime = 500 * time.Millisecond

func shuffled(t *topology.Topology, seed uint64, o papers.Options) (workload.Source, error) {
	to, err := workload.InTurn(t, seed)
	if err != nil {
		return nil, err
	}
	c := workload.ClosedConfig{Senders: workload.Hosts(t), To: to, Sizes: workload.Fixed(shuffleBytes),
		Spread: 10 * time.Millisecond, Class: elephant, Seed: seed}
	if o.Quick {
		c.Rounds = 2
	}
	return workload.NewClosed(c)
}

// allowed is the payload in Mbit/s that each of 8 hosts can send to other racks by 4
// links of 1 Gbit/s, whatever the scheme.
const allowed = 1000. * 4 / 8 * segment / frameBytes

// Classes of flows.
const (
	mouse = iota
	elephant
)

// byRack has as many hosts in a rack as it has links up.
var byRack = papers.Decision{
	Parameter: "hosts of a leaf", About: []string{"stride", "bijection", "shuffle"},
	Against: "\"4 leaf and 4 spine switches with each leaf connected to 8 hosts where all links have 1Gbps capacity\" (§4)",
	Values:  []papers.DecisionValue{fitted(papers.DecisionValue{Name: "4", Replace: map[string]string{slow: slowHalf}})},
}

// mixed is what came out of the runs of a scheme.
type mixed struct {
	mice   []float64 // µs
	mbit   float64   // an elephant's, sum over those below
	flows  int
	result []*sim.Result
}

func (m *mixed) throughput() float64 { return m.mbit / float64(max(1, m.flows)) }
func (m *mixed) mean() float64       { return (&flows{us: m.mice}).mean() }

// tail is the longest where there are fewer mice than 10,000.
func (m *mixed) tail() float64 { return stats.Percentile(m.mice, tail) }

var synthetic = papers.Experiment{
	Name: "drill-t1", Source: "DRILL §4, Table 1", Decisions: append(ofTCP("stride", "bijection", "shuffle"), byRack),
	Title: "4 leaves of 8 hosts, 4 spines, 1 Gbit/s: elephants and mice, normalised to ECMP",
	Setting: setting(stated("fabric", slow), stated("mice", "50 KB every 100 ms from each host, to any of another rack"),
		chosen("hosts of a leaf", "8, as stated", "the paper's 1.6 to 1.8 in the bijection need 4: 8 hosts of 1 Gbit/s behind 4 links of 1 Gbit/s are 2:1, which caps any scheme's gain on ECMP at 1.16 to 1.26"),
		chosen("elephants", "endless in stride and bijection; of 2 MB in the shuffle", "1 GB takes 8 s at least, more than a run may"),
		chosen("runs", fmt.Sprintf("%d of each, with other hashes, phases and permutations", seeds), "32 flows depend on luck"),
		chosen("p99.99", "the longest of all mice of all runs", "there are fewer than 10,000")),
	Run: func(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
		top, err := fabric(o, slow, slow)
		if err != nil {
			return nil, err
		}
		out := &papers.Outcome{Because: because(o, "8 hosts of 1 Gbit/s share 4 links of 1 Gbit/s, so elephants between racks have no more than 487 Mbit/s each by any scheme, and ECMP has some 400 of them: the paper's 1.8 is out of reach in the fabric that it states. As elephants fill these links and their queues by every scheme, mice are late by every one")}
		schemes := []scheme{ecmp, conga, presto, drill}
		for _, p := range patterns {
			all, err := p.run(ctx, o, top, schemes)
			if err != nil {
				return nil, err
			}
			out.Rows = append(out.Rows, p.rows(schemes, all)...)
			for _, m := range all {
				out.PacketHops += papers.Hops(m.result)
			}
			out.Settings = append(out.Settings, stated(p.name, fmt.Sprintf("%d mice and %d elephants by ECMP", len(all[0].mice), all[0].flows)))
		}
		return out, nil
	},
}

func (p *pattern) run(ctx context.Context, o papers.Options, top *topology.Topology, schemes []scheme) ([]*mixed, error) {
	n := seeds
	length := p.time
	if o.Quick {
		n, length = 1, length/20
	}
	all := make([]*mixed, len(schemes))
	var configs []sim.Config
	var of []*mixed
	for i, s := range schemes {
		all[i] = new(mixed)
		for k := range n {
			c, err := p.config(o, top, s, o.Seed*seeds+uint64(k), length)
			if err != nil {
				return nil, err
			}
			m := new(mixed)
			c.OnFlow = m.ended(c.Warmup)
			configs, of = append(configs, c), append(of, m)
		}
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	for j, r := range results {
		m := all[j/n]
		m.result = append(m.result, r)
		m.mice = append(m.mice, of[j].mice...)
		m.mbit += of[j].mbit
		m.flows += of[j].flows
		if length > 0 {
			m.endless(top, r, of[j], length-configs[j].Warmup)
		}
	}
	return all, nil
}

func (p *pattern) config(o papers.Options, top *topology.Topology, s scheme, seed uint64, length time.Duration) (sim.Config, error) {
	c := network(seed, top, s)
	c.Duration, c.Warmup = length, length/warm
	until := length
	if length == 0 {
		c.Duration, until = time.Minute, shuffleTime
	}
	big, err := p.elephants(top, seed, o)
	if err != nil {
		return c, err
	}
	to, err := workload.Uniform(top, workload.OtherRack)
	if err != nil {
		return c, err
	}
	small, err := workload.NewPeriodic(workload.PeriodicConfig{
		Senders: workload.Hosts(top), To: to, Sizes: workload.Fixed(mouseBytes), Every: mouseEvery, Until: until, Class: mouse, Seed: seed,
	})
	if err != nil {
		return c, err
	}
	c.Workload = workload.Merge(big, small)
	return c, nil
}

// ended counts a flow that began after a time.
func (m *mixed) ended(from time.Duration) func(sim.FlowEnd) {
	return func(e sim.FlowEnd) {
		switch {
		case e.Start < from:
		case e.Class == mouse:
			m.mice = append(m.mice, float64(e.FCT.Nanoseconds())/1e3)
		default:
			m.mbit += float64(e.Bytes) * 8 / e.FCT.Seconds() / 1e6
			m.flows++
		}
	}
}

// endless counts what endless elephants have delivered, the mice left out.
func (m *mixed) endless(top *topology.Topology, r *sim.Result, run *mixed, took time.Duration) {
	bytes := int64(0)
	for _, b := range r.DeliveredBytes {
		bytes += b
	}
	bytes -= int64(len(run.mice)) * mouseBytes
	m.mbit += float64(bytes) * 8 / took.Seconds() / 1e6
	m.flows += top.NumHosts()
}

// byECMP is a line of the table, with the 1 that is ECMP's.
func byECMP(paper [3]float64) []float64 { return append([]float64{1}, paper[:]...) }

func (p *pattern) rows(schemes []scheme, all []*mixed) (rows []papers.Row) {
	base := all[0]
	var names []string
	var speeds, times []float64
	for i, s := range schemes {
		names, speeds, times = append(names, s.name), append(speeds, all[i].throughput()), append(times, all[i].mean())
	}
	for i, s := range schemes[1:] {
		m := all[i+1]
		label := p.name + ", " + s.name
		rows = append(rows,
			papers.Ratio(label, "elephants' throughput, by ECMP's", p.paper[0][i], m.throughput(), base.throughput(), ratioTolerance),
			papers.Ratio(label, "mice's FCT mean, by ECMP's", p.paper[1][i], m.mean(), base.mean(), ratioTolerance),
			papers.Ratio(label, "mice's FCT p99.99, by ECMP's", p.paper[2][i], m.tail(), base.tail(), ratioTolerance))
	}
	rows = append(rows,
		papers.OrderAs(p.name+", elephants' throughput", names, byECMP(p.paper[0]), speeds),
		papers.OrderAs(p.name+", mice's FCT mean", names, byECMP(p.paper[1]), times),
		papers.Info(p.name+", ECMP", "elephants' throughput, Mbit/s", base.throughput()),
		papers.Info(p.name+", all links between racks full", "elephants' throughput, by ECMP's", allowed/base.throughput()),
		papers.Info(p.name+", ECMP", "mice's FCT mean, µs", base.mean()),
		papers.Info(p.name+", ECMP", "mice's FCT p99.99, µs", base.tail()))
	return rows
}
