package main

import (
	"cmp"

	"weft/bench/failover"
	"weft/bench/permutation"
	"weft/bench/stats"
	"weft/topology"
)

// Plain TCP over an MTU of 1500 bytes carries 1448 bytes of payload in a
// packet (20 IP, 20 TCP, 12 timestamps) that takes 1514 of a link's time, with
// its Ethernet header.
const (
	plainPayload = 1448
	fullFrame    = 1514
)

// idealsOf returns the ideal rate of all hosts together for each permutation, in Mbit/s. It
// is the sum of the max-min fair rates of streams that are spread evenly over their paths.
// In a fabric of full bisection that is the rate of the hosts' links.
func idealsOf(t *topology.Topology, o demoOptions) []float64 {
	all := make([]float64, o.permutations)
	for i := range all {
		for _, goodput := range failover.Ideal(t, permutation.Random(t, o.seed+uint64(i)), o.rate) {
			all[i] += goodput / failover.Payload * plainPayload / fullFrame
		}
	}
	return all
}

// percentOf is 0 where nothing is to be had, as in a fabric that is cut in two.
func percentOf(goodput, ideal float64) float64 {
	if ideal == 0 {
		return 0
	}
	return 100 * goodput / ideal
}

// idealMbit is a host's, the mean of all hosts.
func (d *demo) idealMbit() float64 {
	return stats.Median(d.ideals) / float64(d.topology.NumHosts())
}

// idealNote says what the ideal is.
func (d *demo) idealNote() string {
	s := "every host sends at the full rate of its link"
	sum := 0.0
	for n := range d.topology.Hosts() {
		sum += d.linkRate(d.topology.Ports(n.ID)[0].Link) * plainPayload / fullFrame
	}
	if stats.Median(d.ideals) < 0.999*sum {
		s = "every host has its max-min fair share of the fabric, with all streams spread evenly over their paths (the mean of all hosts)"
	}
	return s + ", of which plain TCP delivers 1448 bytes of each 1514 (Ethernet 14, IP 20, TCP 20, timestamps 12). " +
		"One ideal for all rows: weft's outer header (20 bytes a packet) and everybody's acknowledgements count against them."
}

// linkRate is a link's in Mbit/s.
func (d *demo) linkRate(l topology.LinkID) float64 {
	return cmp.Or(d.topology.Rate(l), d.options.rate)
}
