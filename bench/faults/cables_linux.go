package faults

import (
	"time"

	"weft/internal/kernel/disturb"
	"weft/lab"
)

var ofCables = []Fault{
	{Name: "cable-down", What: "a cable between aggregation and core is cut", Inject: failing("a0.2-c1.1", lab.FailLoud),
		Cause: Cause{{"link a0.2-c1.1"}}},
	{Name: "cable-silent", What: "a link loses all packets but those of the switches' agents, and stays up", Inject: failing("e0.0-a0.3", lab.FailSilentData),
		Cause: Cause{{"e0.0-a0.3"}}},
	{Name: "cable-one-way", What: "a link loses all packets in one direction", Inject: disturbing(disturb.Disturbance{Loss: 1, Short: true}, end{"a0.2", "e0.0"}),
		Cause: Cause{{"e0.0-a0.2"}}},
	{Name: "cable-far", What: "a link in another pod loses all packets but the agents'", Inject: failing("e3.1-a3.2", lab.FailSilentData),
		Cause: Cause{{"a3.2"}}},
	{Name: "slow-link", What: "a link at a tenth of its rate", Inject: slowed("a0.2", "c1.1", 0.1),
		Cause: Cause{{"a0.2-c1.1", "slow"}, {"a0.2-c1.1", "loses"}}},
	{Name: "loss", What: "0.5 % random loss on a link, both ways", Inject: disturbing(disturb.Disturbance{Loss: 200, Short: true}, bothEnds("e0.0", "a0.2")...),
		Cause: Cause{{"e0.0-a0.2", "loses"}}},
	{Name: "loss-one-way", What: "2 % random loss on a link, one way", Inject: disturbing(disturb.Disturbance{Loss: 50, Short: true}, end{"a0.3", "c2.1"}),
		Cause: Cause{{"a0.3-c2.1", "loses"}}},
	{Name: "bit-errors", What: "a wrong bit in 1 % of the packets on a link", Inject: disturbing(disturb.Disturbance{Flip: 100, Short: true}, bothEnds("e0.0", "a0.3")...),
		Cause: Cause{{"e0.0-a0.3"}}},
	{Name: "flapping", What: "a link goes down and comes back, every 400 ms", Inject: flapping("a0.3-c2.2", 400*time.Millisecond),
		Cause: Cause{{"a0.3-c2.2"}}},
	{Name: "late-link", What: "2 ms more delay on one link", Inject: disturbing(disturb.Disturbance{Skew: 2 * time.Millisecond, Short: true}, end{"a0.2", "c1.2"}),
		Cause: Cause{{"a0.2-c1.2"}, {"c1.2", "later"}}},
	{Name: "mtu-hole", What: "a link loses packets longer than 1400 bytes", Inject: disturbing(disturb.Disturbance{Longest: 1400}, end{"a0.2", "c1.1"}),
		Cause: Cause{{"c1.1", "MTU"}, {"c1.1", "long"}, {"c1.1", "full size"}}},
}
