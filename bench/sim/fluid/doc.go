// Package fluid simulates a fabric flow by flow: a flow is a rate, not packets. It
// answers questions about many hosts and long times, such as the thesis' questions about
// Hedera (§4.3.5: 8,192 hosts for 60 s), but none about queues.
//
// Three models give flows their rates: max-min fair rates (network), those of the thesis'
// own simulator (AIMD), and those of sources that do not react to losses (OpenLoop).
// Rates are in Mbit/s, as the topology's are.
//
// The package is pure: no I/O, no clock, no goroutine. Random numbers come from a seed.
// Nothing in it is safe for concurrent use.
package fluid
