package main

import (
	"cmp"
	"context"
	"fmt"

	"weft/bench/failover"
	"weft/bench/permutation"
	"weft/bench/stats"
	"weft/encap"
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
func idealsOf(f demoFabric, o demoOptions) []float64 {
	all := make([]float64, o.permutations)
	for i := range all {
		for _, goodput := range f.ideal(o.streams(f, o.seed+uint64(i)), o.rate) {
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

// streams says who sends to whom: as --traffic has it, otherwise each host to one in another pod.
func (o *demoOptions) streams(f demoFabric, seed uint64) (all []permutation.Stream) {
	if o.matrix == nil {
		all, _ = f.permutation(context.Background(), seed) // readFabric has asked
		return all
	}
	pairs, _ := o.matrix.Pairs(seed) // checked
	for _, p := range pairs {
		all = append(all, permutation.Stream{From: p.From, To: p.To})
	}
	return all
}

// load says in words who sends to whom.
func (d *demo) load() string {
	if d.options.matrix == nil {
		return "one stream per host"
	}
	return fmt.Sprintf("%d streams, matrix %s", len(d.options.streams(d.topology, d.options.seed)), d.options.matrix.Matrix())
}

// idealMbit is a stream's, the mean of all.
func (d *demo) idealMbit() float64 {
	return stats.Median(d.ideals) / float64(len(d.options.streams(d.topology, d.options.seed)))
}

// idealNote says what the ideal is.
func (d *demo) idealNote() string {
	s := "every host sends at the full rate of its link"
	sum := 0.0
	for _, l := range d.topology.hostLinks() {
		sum += d.linkRate(l) * plainPayload / fullFrame
	}
	switch {
	case d.options.matrix != nil:
		s = "every stream has its max-min fair share of the fabric, with all spread evenly over their paths (the mean of all streams)"
	case stats.Median(d.ideals) < 0.999*sum:
		s = "every host has its max-min fair share of the fabric, with all streams spread evenly over their paths (the mean of all hosts)"
	}
	carrier, _ := encap.ParseCarrier(d.options.encap) // checked
	return s + fmt.Sprintf(", of which plain TCP delivers %d bytes of each %d (Ethernet 14, IP 20, TCP 20, timestamps 12). "+
		"One ideal for all rows: weft's outer header (%d bytes a packet, %s) and everybody's acknowledgements count against them.", plainPayload, fullFrame, carrier.Overhead(), carrier)
}

// rates says in words which rates links have.
func (d *demo) rates() string {
	for l := range d.topology.NumLinks() {
		if rate := d.linkRate(topology.LinkID(l)); rate != d.options.rate {
			return fmt.Sprintf("links of %g Mbit/s, or of a rate of their own", d.options.rate)
		}
	}
	return fmt.Sprintf("links of %g Mbit/s", d.options.rate)
}

// linkRate is a link's in Mbit/s.
func (d *demo) linkRate(l topology.LinkID) float64 {
	return cmp.Or(d.topology.rate(l), d.options.rate)
}
