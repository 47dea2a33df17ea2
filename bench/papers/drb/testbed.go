package drb

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/topology"
)

// The testbed of §6: 54 hosts and real switches.
const (
	testbedFabric = "fat-tree:k=6,host-rate=1000,fabric-rate=1000,core-rate=1000"
	jumbo         = 9000
	testbedQueue  = 2 << 20
	testbedRTO    = 300 * time.Millisecond
	testbedSpread = 10 * time.Millisecond
)

var testbedSetting = []papers.Parameter{
	{Name: "fabric", Value: "fat-tree, n = 6, 54 hosts, 1 Gbit/s, packets of 9 KB"},
	{Name: "traffic", Value: "random permutation, without end"},
	{Name: "ports", Value: "2 MB", Chosen: true, Why: "not stated; the paper saw 170 packets, 1.4 MB, in a queue"},
	{Name: "links", Value: "5 µs of propagation and switching each", Chosen: true, Why: "not stated; as in §5"},
	{Name: "window", Value: "256 KB", Chosen: true, Why: "not stated; as §5 has it. 64 KB are 7 packets of 9 KB, a link's delay but no queue"},
	{Name: "TCP", Value: "NewReno with SACK's recovery, least retransmission timeout 300 ms", Chosen: true,
		Why: "not stated; the timeout is Windows Server 2008's"},
	{Name: "resequencer", Value: "by TCP sequence, 10 ms, or none"},
	{Name: "starts", Value: "at random within the first 10 ms", Chosen: true, Why: "not stated"},
}

// testbed is §6's network under a permutation.
func testbed(o papers.Options, policy string, resequence bool, tm times) (sim.Config, error) {
	t, err := topology.Parse(testbedFabric)
	if err != nil {
		return sim.Config{}, err
	}
	c := sim.Config{
		Topology: t, Seed: o.Seed, Duration: tm.duration, Warmup: tm.warmup,
		Delay: linkDelay, Queues: []sim.Queue{{Bytes: testbedQueue}}, Policy: policy,
		TCP: tcp.Config{MSS: jumbo - 40, WindowBytes: stated, RTOMin: testbedRTO},
	}
	if resequence {
		c.Resequencer = inSequence(hold)
	}
	return permute(c, testbedSpread)
}

var testbedTimes = times{6 * time.Second, 3 * time.Second}

func testbedTime(o papers.Options, out *papers.Outcome) times {
	if !o.Quick {
		return testbedTimes
	}
	out.Settings = []papers.Parameter{{Name: "quick", Value: "60 ms, the first 30 ms dropped"}}
	return times{60 * time.Millisecond, 30 * time.Millisecond}
}

var testbedTaken = papers.Parameter{Name: "time", Value: "6 s, the first 3 s dropped", Chosen: true, Why: "the paper's 120 s would take minutes"}

func f10() papers.Experiment {
	return papers.Experiment{
		Name: "drb-f10", Source: paper + " §6.2, Fig. 10",
		Title:     "goodput on the testbed, without and with a resequencer",
		Setting:   settingOf(testbedSetting, testbedTaken),
		Mutants:   []papers.Mutant{atRandom, unordered},
		Decisions: []papers.Decision{hash, windowOf([]string{"RB", "ECMP"}, "", 64, 128, 512), chips, ofWindows, asInF12},
		Run:       runF10,
	}
}

func runF10(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	tm := testbedTime(o, out)
	var configs []sim.Config
	for _, resequence := range []bool{false, true} {
		for _, policy := range policies {
			if policy == "ecmp" && resequence {
				continue // keeps order by itself
			}
			c, err := testbed(o, policy, resequence, tm)
			if err != nil {
				return nil, err
			}
			configs = append(configs, c)
		}
	}
	runs, hops, err := simulate(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	out.PacketHops = hops
	without, with := runs[:len(policies)], runs[len(policies):]
	bare := map[string]float64{"ECMP": 279, "RB": 570, "RRB": 694, "DRB": 905}
	held := map[string]float64{"RB": 827, "RRB": 968, "DRB": 970}
	for _, m := range without {
		out.Rows = append(out.Rows, papers.Within(m.label+", no resequencer", goodputMetric, bare[m.label], m.goodput, 10))
	}
	for _, m := range with {
		out.Rows = append(out.Rows, papers.Within(m.label, goodputMetric, held[m.label], m.goodput, 10))
	}
	of := func(runs []measured, label string) float64 { return byLabel(runs, label).goodput }
	out.Rows = append(out.Rows,
		papers.OrderAs("goodput without a resequencer", []string{"DRB", "RRB", "RB", "ECMP"}, []float64{bare["DRB"], bare["RRB"], bare["RB"], bare["ECMP"]},
			[]float64{of(without, "DRB"), of(without, "RRB"), of(without, "RB"), of(without, "ECMP")}),
		papers.OrderAs("goodput", []string{"DRB", "RRB", "RB"}, []float64{held["DRB"], held["RRB"], held["RB"]},
			[]float64{of(with, "DRB"), of(with, "RRB"), of(with, "RB")}))
	better := true
	for _, m := range with {
		better = better && papers.Above(m.goodput, of(without, m.label))
	}
	out.Rows = append(out.Rows, papers.Sign("a resequencer betters each", better))
	out.Because = "ECMP gets more here than on the testbed. If switches hash alike at both layers, as those of one chip do, and all traffic is to other pods, as drb-f12's figures have it, ECMP gets 256 to 277 Mbit/s for 279 (three seeds); both were put together for this figure, so that is a fit."
	out.Charts = []papers.Chart{
		bars("Fig. 10a: without a resequencer", "Mbit/s per host", without, bare),
		bars("Fig. 10b: with one", "Mbit/s per host", with, held),
	}
	return out, nil
}

func f11() papers.Experiment {
	return papers.Experiment{
		Name: "drb-f11", Source: paper + " §6.2, Fig. 11",
		Title:     "queues on the testbed, and how far packets are out of order",
		Setting:   settingOf(testbedSetting, testbedTaken),
		Mutants:   []papers.Mutant{atRandom},
		Decisions: []papers.Decision{counted, windowOf([]string{"RB", "ECMP"}, "", 128, 384, 512, 768, 1024), hash, chips, ofWindows, degreesOfDisorder},
		Run:       runF11,
	}
}

func runF11(ctx context.Context, o papers.Options) (*papers.Outcome, error) {
	out := &papers.Outcome{}
	tm := testbedTime(o, out)
	var configs []sim.Config
	otherDegrees := make(map[string]*disorder) // by the label of a run, if a degree is another one than by itself
	for _, policy := range policies {
		c, err := testbed(o, policy, policy != "ecmp", tm)
		if err != nil {
			return nil, err
		}
		if degree := o.As(byOvertaking); degree != byOvertaking {
			d := newDisorder(degree, tm.warmup)
			otherDegrees[labels[policy]], c.OnArrival = d, d.arrived
		}
		configs = append(configs, c)
	}
	for _, policy := range []string{"ecmp", "rb"} {
		c, err := testbed(o, policy, policy != "ecmp", tm)
		if err != nil {
			return nil, err
		}
		c.TCP.WindowBytes = 2 * stated
		configs = append(configs, c)
	}
	all, hops, err := simulate(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	runs, wider := all[:len(policies)], all[len(policies):]
	out.PacketHops = hops
	behind := func(m measured) float64 {
		if d := otherDegrees[m.label]; d != nil {
			return d.share(3)
		}
		return overtaken(m, 3)
	}
	queues := map[string][2]float64{"DRB": {1.9, 6.2}, "RRB": {2.5, 6.4}, "RB": {3.4, 27.9}}
	late := map[string]float64{"DRB": 3, "RRB": 15, "RB": 74}
	for _, m := range runs {
		first := m.Places[sim.EdgeUp]
		arriving, one := alsoArriving(o, busy(m))
		mean, most := first.TimeMeanBytes/jumbo+arriving, float64(first.MaxBytes)/jumbo+one
		if m.label == "ECMP" {
			out.Rows = append(out.Rows, papers.Within(m.label, "first hop's greatest queue, packets", 170, most, papers.Stated))
			continue
		}
		out.Rows = append(out.Rows,
			papers.Within(m.label, "first hop's mean queue, packets", queues[m.label][0], mean, 10),
			papers.Within(m.label, "first hop's greatest queue, packets", queues[m.label][1], most, 10),
			papers.Within(m.label, "packets that 3 or more have overtaken, %", late[m.label], behind(m), 10))
	}
	value := func(of func(measured) float64, label string) float64 { return of(byLabel(runs, label)) }
	queue := func(m measured) float64 { return m.Places[sim.EdgeUp].TimeMeanBytes }
	most := func(m measured) float64 { return float64(m.Places[sim.EdgeUp].MaxBytes) }
	out.Rows = append(out.Rows,
		papers.Order("mean queue: RB > RRB > DRB", value(queue, "RB"), value(queue, "RRB"), value(queue, "DRB")),
		papers.Sign("greatest queue: ECMP > RB > RRB and DRB",
			papers.Above(value(most, "ECMP"), value(most, "RB")) && papers.Above(value(most, "RB"), max(value(most, "RRB"), value(most, "DRB")))),
		papers.Order("out of order by 3 or more: RB > RRB > DRB", value(behind, "RB"), value(behind, "RRB"), value(behind, "DRB")))
	for _, m := range wider {
		label := m.label + ", 512 KB window"
		out.Rows = append(out.Rows,
			papers.Info(label, "first hop's greatest queue, packets", most(m)/jumbo),
			papers.Info(label, "packets that 3 or more have overtaken, %", overtaken(m, 3)),
			papers.Info(label, goodputMetric, m.goodput))
	}
	out.Because = "A queue here is of packets that have been received whole; where room is taken from a packet's first byte, as in a switch's memory, each mean would be longer by the port's load, nearly 1, and so about the paper's. The 170 packets of ECMP, at a port that three hosts feed, are windows of more than 500 KB; with those RB gets more than the paper's goodput. How the paper counts degrees of disorder it does not say; by the degrees of RFC 4737, RFC 5236 and Linux's TCP ours are RB 20 to 40, RRB 2.2 to 5.2, DRB 0.1 to 0.3 %, none near the paper's (one seed)."
	degree := papers.Chart{Title: "Packets out of order", X: "overtaken by at least", Y: "%"}
	for _, m := range runs[1:] {
		line := papers.Line{Name: m.label}
		for n := 1; n <= 20; n++ {
			line.X = append(line.X, float64(n))
			line.Y = append(line.Y, overtaken(m, n))
		}
		degree.Lines = append(degree.Lines, line)
	}
	out.Charts = []papers.Chart{queueingDelays("Fig. 11: waiting by hop", runs), degree}
	return out, nil
}

// busy is how much of the time ports of the first hop send, on average.
func busy(m measured) float64 {
	const ports = 54 // as many as hosts
	all := float64(m.DataPackets + m.AckPackets)
	bytes := (float64(m.DataPackets)*jumbo + float64(m.AckPackets)*40) / all
	return float64(m.Places[sim.EdgeUp].Packets) * bytes * 8 / (ports * 1e9 * (m.End - m.warmup).Seconds())
}

// overtaken is the percentage of data packets that arrived behind n or more which
// had been sent later.
func overtaken(m measured, n int) float64 { return percentFrom(m.OutOfOrder, n) }

// percentFrom is the percentage of packets, counted by degree, of which the degree is n or more.
func percentFrom(counts [64]uint64, n int) float64 {
	var above, all float64
	for degree, count := range counts {
		all += float64(count)
		if degree >= n {
			above += float64(count)
		}
	}
	if all == 0 {
		return 0
	}
	return 100 * above / all
}
