// Package fluid simulates a fabric flow by flow: a flow is a rate, not packets.
// It answers questions of many hosts and long times, such as those that the
// thesis asks of Hedera (§4.3.5: 8,192 hosts for 60 s), and none of queues.
//
// Three models say what rates flows get: max-min fair ones (network), those of
// the thesis' own simulator (AIMD), and those of sources that do not listen to
// losses (OpenLoop). Rates are in Mbit/s, as the topology's are.
//
// The package is pure: no I/O, no clock, no goroutine. What is random comes from
// a seed. Nothing in it may be used by two goroutines at once.
package fluid
