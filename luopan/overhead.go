package luopan

import "time"

// Overhead is the share of the links' capacity that probing takes, by the formula
// of Luopan §3.1: d·active·probeBytes / (expiry·links·linkBits), where the paper's
// factor 2 is d, the number of samples. active is how many destinations there is
// traffic to, probeBytes the length of a probe on the wire, links how many lead up
// from the rack, linkBits their rate in bits per second each.
//
// The formula takes a round for as long as expiry; where a round trip goes before
// the answers (see the package), put in the time from round to round. Answers to
// others' probes are as many again where traffic is symmetric, and take the links'
// capacity just the same; the formula does not count them. Without time or capacity
// the result is +Inf or NaN.
func Overhead(active, probeBytes int, expiry time.Duration, links int, linkBits float64, samples int) float64 {
	bits := 8 * float64(samples) * float64(active) * float64(probeBytes)
	return bits / (expiry.Seconds() * float64(links) * linkBits)
}
