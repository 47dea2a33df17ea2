package thesis

import (
	"context"
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/topology"
)

// Shuffles with packets are of fewer bytes: whole ones would take minutes of CPU each.
const (
	packetPart      = 25 // of shuffleBytes
	packetPartQuick = 500
	packetBuffer    = 128_000
	oneSwitch       = "leaf-spine:leaves=1,spines=1,hosts=16,host-rate=1000,fabric-rate=1000"
)

// packetShuffles adds rows of TCP in the fabric and at one switch, of which rates know
// nothing: losses and timeouts.
func packetShuffles(ctx context.Context, o papers.Options, out *papers.Outcome) error {
	part := packetPart
	if o.Quick {
		part = packetPartQuick
	}
	fabrics := []struct{ name, spec string }{{"ECMP by flow", fatTree(4)}, {"non-blocking", oneSwitch}}
	var configs []sim.Config
	var ends []*lasts
	for _, f := range fabrics {
		t, err := topology.Parse(f.spec)
		if err != nil {
			return err
		}
		to, err := shuffleOrder(o.As("order"), t, o.Seed)
		if err != nil {
			return err
		}
		source, err := workload.NewClosed(workload.ClosedConfig{
			Senders: workload.Hosts(t), To: to, Sizes: workload.Fixed(int64(shuffleBytes / part)),
		})
		if err != nil {
			return err
		}
		l := &lasts{Source: source, at: make([]time.Duration, t.NumHosts())}
		ends = append(ends, l)
		configs = append(configs, sim.Config{
			Topology: t, Seed: o.Seed, Duration: 10 * time.Minute, Delay: testbedDelay, Policy: "ecmp",
			Queues: []sim.Queue{{Bytes: packetBuffer}}, Workload: l,
			TCP: tcp.Config{WindowBytes: testbedWindow, RTOMin: testbedRTO},
		})
	}
	results, err := papers.Sweep(ctx, o, configs)
	if err != nil {
		return err
	}
	out.PacketHops = papers.Hops(results)
	for i, f := range fabrics {
		mean := 0.0
		for _, at := range ends[i].at {
			mean += at.Seconds() * float64(part) / float64(len(ends[i].at))
		}
		label := f.name + ", TCP's packets, a part of the bytes"
		out.Rows = append(out.Rows,
			papers.Info(label, "mean time of a host, s, times the part", mean),
			papers.Info(label, "timeouts", float64(results[i].Timeouts)))
	}
	return nil
}
