package conga

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/topology"
)

// f13 is Incast by fan-in.
func f13() papers.Experiment {
	return papers.Experiment{
		Name: "conga-f13", Source: "CONGA §5.3, Fig. 13",
		Title: "A client asks N servers for their parts of 10 MB at once: MPTCP loses most of its throughput, CONGA with TCP much less",
		Setting: slices.Concat([]papers.Parameter{parallelLinks,
			{Name: "file", Value: "10 MB, of which each of 1 to 63 servers has a part; the client asks again when all have come"},
			{Name: "least retransmission timeout", Value: "200 ms and 1 ms"},
			{Name: "packets", Value: "1,500 and 9,000 bytes"},
			{Name: "servers", Value: "drawn with the seed, the same for all files", Chosen: true, Why: "not stated"},
		}, incastConnections, common),
		Mutants:   []papers.Mutant{plain, patient, hashing},
		Decisions: []papers.Decision{buffers("timeout", "packets"), ownConnections("timeout", "packets"), windows("timeout", "packets"), initialWindow("timeout", "packets"), timestamps("timeout", "packets")},
		Run:       runIncast,
	}
}

// incastConnections are those of the client.
var incastConnections = []papers.Parameter{
	{Name: "connections", Value: "one from each server, kept open", Chosen: true, Why: "not stated; the client asks repeatedly, as in the work that it refers to"},
	idle,
	mptcpModel,
}

// plain has TCP in place of MPTCP, patient no short timeouts.
var (
	plain = papers.Mutant{
		Name: "MPTCP has one subflow", About: []string{"MPTCP"},
		Tune: func(c *sim.Config) { c.TCP.Subflows = min(c.TCP.Subflows, 1) },
	}
	patient = papers.Mutant{
		Name: "the least timeout is 200 ms throughout", About: []string{"1 ms"},
		Tune: func(c *sim.Config) { c.TCP.RTOMin = rtoMin },
	}
)

const (
	fileBytes = 10_000_000
	files     = 40
	shortRTO  = time.Millisecond
	// incastEnd is for those that wait for timeouts.
	incastEnd = 60 * time.Second
)

var (
	fanIns      = []int{1, 2, 4, 8, 16, 32, 48, 63}
	fanInsQuick = []int{1, 4, 15}
	packetBytes = []int{1500, 9000}
	timeouts    = []time.Duration{rtoMin, shortRTO}
)

// incast is a point of the figure.
type incast struct {
	scheme  string
	fanIn   int
	bytes   int // of a packet
	timeout time.Duration
}

func (p incast) label() string {
	return fmt.Sprintf("%s, packets of %d, least timeout %v", labelOf(p.scheme), p.bytes, p.timeout)
}

func runIncast(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	hosts, many, n := 32, fanIns, files
	out := &papers.Outcome{}
	if o.Quick {
		hosts, many, n = 8, fanInsQuick, 5
		out.Settings = []papers.Parameter{{Name: "hosts", Value: "8 of a rack, 5 files", Chosen: true, Why: "quick"}}
	}
	fabric, err := testbed(hosts)
	if err != nil {
		return nil, err
	}
	var points []incast
	for _, bytes := range packetBytes {
		for _, scheme := range []string{conga, mptcp} {
			for _, timeout := range timeouts {
				for _, n := range many {
					points = append(points, incast{scheme, n, bytes, timeout})
				}
			}
		}
	}
	order := rand.New(rand.NewPCG(o.Seed, 0x696e6361)).Perm(fabric.NumHosts())
	sources, configs := make([]*requests, len(points)), make([]sim.Config, len(points))
	for i, p := range points {
		r := &requests{client: topology.NodeID(order[0]), bytes: fileBytes, jobs: n, way: 4 * linkDelay}
		for _, h := range order[1 : 1+p.fanIn] {
			r.servers = append(r.servers, topology.NodeID(h))
		}
		c := run{fabric: fabric, connections: 1, policy: p.scheme, times: times{0, 0, incastEnd}}.bare(o.Seed)
		c.Workload = r
		c.TCP.MSS = p.bytes - headerBytes
		c.TCP.RTOMin = p.timeout
		sources[i], configs[i] = r, c
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = papers.Hops(results)
	out.Rows, out.Charts = incastRows(points, func(i int) float64 {
		return sources[i].percent(results[i].End, 10_000)
	})
	return out, nil
}

const throughput = "effective throughput, % of the client's link"

// incastRows also draws the figure's two parts.
func incastRows(points []incast, percent func(i int) float64) (rows []papers.Row, charts []papers.Chart) {
	most := make(map[incast]float64) // of the greatest fan-in
	for _, bytes := range packetBytes {
		chart := papers.Chart{Title: fmt.Sprintf("Packets of %d bytes", bytes), X: "servers", Y: throughput}
		for i, p := range points {
			if p.bytes != bytes {
				continue
			}
			if n := len(chart.Lines); n == 0 || chart.Lines[n-1].Name != p.label() {
				chart.Lines = append(chart.Lines, papers.Line{Name: p.label()})
			}
			l := &chart.Lines[len(chart.Lines)-1]
			l.X, l.Y = append(l.X, float64(p.fanIn)), append(l.Y, percent(i))
			p.fanIn = 0
			most[p] = percent(i)
		}
		charts = append(charts, chart)
	}
	of := func(scheme string, bytes int, timeout time.Duration) float64 {
		return most[incast{scheme, 0, bytes, timeout}]
	}
	rows = []papers.Row{
		papers.AtMost("MPTCP, packets of 1500, least timeout 200ms, most servers", throughput, 30, of(mptcp, 1500, rtoMin), 0),
		papers.Within("MPTCP, packets of 9000, least timeout 200ms, most servers", throughput, 5, of(mptcp, 9000, rtoMin), aboutPercent),
		papers.Order("MPTCP, packets of 1500, most servers: least timeout 1 ms > 200 ms", of(mptcp, 1500, shortRTO), of(mptcp, 1500, rtoMin)),
	}
	for _, bytes := range packetBytes {
		with, without := of(conga, bytes, rtoMin), of(mptcp, bytes, rtoMin)
		rows = append(rows,
			papers.Between(fmt.Sprintf("CONGA with TCP by MPTCP, packets of %d, least timeout 200ms, most servers", bytes), "ratio of throughputs", 2, 8, with/max(without, 0.01), 0),
			papers.Order(fmt.Sprintf("packets of %d, least timeout 200ms, most servers: CONGA with TCP > MPTCP", bytes), with, without))
	}
	rows = append(rows, papers.Order("packets of 9000, least timeout 1 ms, most servers: CONGA with TCP > MPTCP", of(conga, 9000, shortRTO), of(mptcp, 9000, shortRTO)))
	for i, p := range points {
		rows = append(rows, papers.Info(fmt.Sprintf("%s, servers: %d", p.label(), p.fanIn), throughput, percent(i)))
	}
	return rows, charts
}
