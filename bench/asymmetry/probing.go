package asymmetry

import (
	"cmp"
	"time"

	"weft/bench/testbed"
	"weft/encap"
	"weft/internal/simnet"
	"weft/luopan"
	"weft/stack"
	"weft/topology"
)

// Probing is the cost of sampling on the links up from the two sending racks, measured
// and by the paper's formula (Luopan §3.1).
type Probing struct {
	// Metric is the metric of most samples at the end.
	Metric string `json:"metric"`
	// Active is the sum, over all hosts in the two racks, of each host's destination
	// racks. Here hosts probe; in the paper switches do.
	Active int `json:"active"`
	// PeriodMs is the time from one round of probes to the next. It includes the wait for
	// answers. RTTMs is the round trip of samples.
	PeriodMs float64 `json:"period_ms"`
	RTTMs    float64 `json:"rtt_ms"`

	Probes  uint64 `json:"probes"`  // of the two racks' hosts
	Bytes   uint64 `json:"bytes"`   // of these on the wire, Ethernet headers included
	Answers uint64 `json:"answers"` // that these hosts gave others

	// MeasuredPercent and FormulaPercent are parts of the links' capacity.
	MeasuredPercent float64 `json:"measured_percent"`
	FormulaPercent  float64 `json:"formula_percent"`
}

// probes are counted by the hosts of the sending racks.
type probes struct{ sent, bytes, answered, rounds uint64 }

func readProbes(s *testbed.Session) (p probes) {
	for _, h := range senders(s) {
		c := h.Stats().Samples
		p.sent += c.Sent
		p.bytes += c.Bytes + simnet.FrameOverhead*c.Sent
		p.answered += c.Answered
		p.rounds += c.Table.Rounds
	}
	return p
}

func senders(s *testbed.Session) []*stack.Host {
	return s.Stacks[:len(s.Stacks)/racks*receivers]
}

// probing compares what was counted from a to b with the formula; nil of a policy
// that does not sample.
func probing(s *testbed.Session, a, b reading, t *topology.Topology, o *Options) *Probing {
	rounds := b.probes.rounds - a.probes.rounds
	if rounds == 0 {
		return nil
	}
	elapsed := b.at.Sub(a.at)
	p := &Probing{
		Probes: b.probes.sent - a.probes.sent, Bytes: b.probes.bytes - a.probes.bytes,
		Answers: b.probes.answered - a.probes.answered,
	}
	metrics := make(map[string]int)
	for _, h := range senders(s) {
		for _, c := range h.Congestion() {
			p.Active++
			p.RTTMs += c.RTT.Seconds() * 1e3
			if metrics[c.Metric]++; metrics[c.Metric] > metrics[p.Metric] {
				p.Metric = c.Metric
			}
		}
	}
	p.RTTMs /= float64(max(p.Active, 1))
	period := time.Duration(float64(elapsed) * float64(p.Active) / float64(rounds))
	p.PeriodMs = period.Seconds() * 1e3

	links := liveUplinks(t)
	bits := o.RateMbit * 1e6
	p.MeasuredPercent = 100 * 8 * float64(p.Bytes) / (elapsed.Seconds() * float64(links) * bits)
	wire := encap.SampleLen + o.Carrier.Overhead() + simnet.FrameOverhead
	p.FormulaPercent = 100 * luopan.Overhead(p.Active, wire, period, links, bits, cmp.Or(o.Policy.Samples, 2))
	return p
}

// liveUplinks are the links up from the sending racks.
func liveUplinks(t *topology.Topology) (n int) {
	hosts := t.NumHosts() / racks
	for rack := range receivers {
		n += len(t.Paths(topology.NodeID(rack*hosts), topology.NodeID(receivers*hosts)).Live)
	}
	return n
}
