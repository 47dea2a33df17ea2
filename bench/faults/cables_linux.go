package faults

import (
	"time"

	"weft/internal/kernel/disturb"
	"weft/lab"
)

var ofCables = []Fault{
	{Name: "cable-down", What: "a cable between aggregation and core is cut", Inject: failing("a0.2-c1.1", lab.FailLoud),
		Cause: Cause{{"link a0.2-c1.1"}}, At: []string{"a0.2-c1.1"}},
	{Name: "cable-silent", What: "a link loses all packets but those of the switches' agents, and stays up", Inject: failing("e0.0-a0.3", lab.FailSilentData),
		Cause: Cause{{"probes"}, {"loses"}, {"out of use"}}, At: []string{"e0.0-a0.3"}},
	{Name: "cable-one-way", What: "a link loses all packets in one direction", Inject: disturbing(disturb.Disturbance{Loss: 1, Short: true}, end{"a0.2", "e0.0"}),
		Cause: Cause{{"probes"}, {"loses"}, {"out of use"}}, At: []string{"e0.0-a0.2"}},
	{Name: "cable-far", What: "a link in another pod loses all packets but the agents'", Inject: failing("e3.1-a3.2", lab.FailSilentData),
		Cause: Cause{{"probes"}, {"loses"}, {"out of use"}}, At: []string{"e3.1-a3.2"}},
	{Name: "slow-link", What: "a link at a tenth of its rate", Inject: slowed("a0.2", "c1.1", 0.1),
		Cause: Cause{{"slow"}, {"loses"}}, At: []string{"a0.2-c1.1"}},
	{Name: "loss", What: "0.5 % random loss on a link, both ways", Inject: disturbing(disturb.Disturbance{Loss: 200, Short: true}, bothEnds("e0.0", "a0.2")...),
		Cause: Cause{{"loses"}}, At: []string{"e0.0-a0.2"}},
	{Name: "loss-one-way", What: "2 % random loss on a link, one way", Inject: disturbing(disturb.Disturbance{Loss: 50, Short: true}, end{"a0.3", "c2.1"}),
		Cause: Cause{{"loses"}}, At: []string{"a0.3-c2.1"}},
	{Name: "bit-errors", What: "a wrong bit in 1 % of the packets on a link", Inject: disturbing(disturb.Disturbance{Flip: 100, Short: true}, bothEnds("e0.0", "a0.3")...),
		Cause: Cause{{"loses"}, {"errors"}}, At: []string{"e0.0-a0.3"}},
	{Name: "flapping", What: "a link goes down and comes back, every 400 ms", Inject: flapping("a0.3-c2.2", 400*time.Millisecond),
		Cause: Cause{{"link"}, {"out of use"}}, At: []string{"a0.3-c2.2"}},
	{Name: "late-link", What: "2 ms more delay on one link", Inject: disturbing(disturb.Disturbance{Skew: 2 * time.Millisecond, Short: true}, end{"a0.2", "c1.2"}),
		Cause: Cause{{"late"}}, At: []string{"a0.2-c1.2"}},
	{Name: "mtu-hole", What: "a link loses packets longer than 1400 bytes", Inject: disturbing(disturb.Disturbance{Longest: 1400}, end{"a0.2", "c1.1"}),
		Cause: Cause{{"MTU"}, {"too long"}, {"full size"}}, At: []string{"a0.2-c1.1", "c1.1"}},
}
