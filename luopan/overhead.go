package luopan

import "time"

// Overhead is the share of the links' capacity that probing takes, by the formula of
// Luopan §3.1: d·active·probeBytes / (expiry·links·linkBits), where d is samples, 2 in the
// paper. active is the number of destinations with traffic, probeBytes the length of a
// probe on the wire, links the number of links up from the rack, linkBits the rate of
// each in bits per second.
//
// The formula assumes that a round is as long as expiry. Where a round also takes a round
// trip (see the package), pass the time from round to round as expiry. With symmetric
// traffic, answers to others' probes take as much capacity again; the formula does not
// count them. Without time or capacity the result is +Inf or NaN.
func Overhead(active, probeBytes int, expiry time.Duration, links int, linkBits float64, samples int) float64 {
	bits := 8 * float64(samples) * float64(active) * float64(probeBytes)
	return bits / (expiry.Seconds() * float64(links) * linkBits)
}
