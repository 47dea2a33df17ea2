package thesis

import (
	"time"

	"weft/bench/papers"
	"weft/bench/sim"
	"weft/bench/sim/aqm"
	"weft/bench/sim/tcp"
	"weft/bench/sim/workload"
	"weft/topology"
)

// The testbed of chapter 5, and what was chosen for it, once for all of its figures.
const (
	twoRacks = "leaf-spine:leaves=2,spines=1,hosts=12,host-rate=1000,fabric-rate=10000"
	rackSize = 12

	testbedDelay  = 20 * time.Microsecond
	testbedBuffer = 1_500_000
	testbedRTO    = 200 * time.Millisecond
	testbedWindow = 4 << 20
	testbedNIC    = 1000 * mtu
	mtu           = 1500
)

var testbedSetting = []papers.Parameter{
	stated("testbed", "two racks of 12 hosts with 1 Gbit/s, joined by 10 Gbit/s (§5.5.1)"),
	stated("ports", "1.5 MB of buffer, shared by those of a switch (§5.5.1)"),
	chosen("share of a port", "all of it", "no other port is congested"),
	chosen("bump", "in front of the port to the receiver, by a virtual queue that drains at its rate", "where the testbed's is on the racks' link"),
	chosen("links", "20 µs each, propagation, switch and host", "a byte takes 213 µs there and back (Fig. 5.3)"),
	chosen("TCP", "NewReno with SACK, window 4 MB, least retransmission timeout 200 ms", "Linux's CUBIC, as it is where round trips are below a millisecond: in its region that is friendly to Reno; the timeout is that of §4.4.2, the window what Linux grows to"),
	chosen("a host's own queue", "1,000 packets", "Linux's; without a bound the whole window of one flow stands there, and no other flow gets a place in a full port"),
}

// testbedConfig is of the testbed while nobody sends.
func testbedConfig(o papers.Options, fabric string, d time.Duration) (sim.Config, error) {
	t, err := topology.Parse(fabric)
	return sim.Config{
		Topology: t, Seed: o.Seed, Duration: d, Delay: testbedDelay, Policy: "ecmp",
		Queues:         []sim.Queue{{RateMbit: 1000, Bytes: testbedBuffer}, {Bytes: testbedBuffer}},
		HostQueueBytes: testbedNIC,
		TCP:            tcp.Config{WindowBytes: testbedWindow, RTOMin: testbedRTO},
	}, err
}

// managed has a bump manage the ports of a place with 1 Gbit/s.
func managed(c *sim.Config, place int, by func() aqm.Discipline) {
	c.Queues[0].Manage = func(_, at int) aqm.Discipline {
		if at != place {
			return nil
		}
		return by()
	}
}

// portTo is the number of the last port on the way to a host.
func portTo(h topology.NodeID) int { return 2*int(h) + 1 }

// elephants are flows without end of the first hosts in turn, that begin one after the other.
func elephants(senders int, to func(i int) topology.NodeID, n int, every time.Duration) (workload.Source, error) {
	var all []workload.Source
	for i := range n {
		s, err := workload.NewClosed(workload.ClosedConfig{
			Senders: []topology.NodeID{topology.NodeID(i % senders)}, To: workload.Among([]topology.NodeID{to(i)}), Rounds: 1,
			Start: time.Duration(i) * every,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return workload.Merge(all...), nil
}

// shorter is a tenth of a time in a quick run.
func shorter(o papers.Options, out *papers.Outcome, d time.Duration) time.Duration {
	if !o.Quick {
		return d
	}
	d /= 10
	out.Settings = append(out.Settings, chosen("time", d.String(), "quick"))
	return d
}
