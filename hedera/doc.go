// Package hedera is a central scheduler of elephants (Al-Fares, thesis ch. 4 and §3.1.7).
// Nodes report the flows that take more than a tenth of a link. Once a period the scheduler
// estimates what these would get if only hosts' own links limited them (Estimator), chooses
// a path for each by a Rule, and tells the nodes. All else goes by the nodes' own rule, such
// as ECMP, and so does everything when the scheduler is silent.
//
// Rules are Global First Fit (thesis §4.2.3), simulated annealing (§4.2.4) and the earlier
// scheduler that gives each link to one elephant (§3.1.7). They know a fabric by the
// interfaces Network and Space, of which Clos is for computed topologies and Data for those
// that are a graph. The thesis gives each host of a fat-tree's pod a core of its own. Here a
// destination has one choice, which stands for a path from each source; where a pod has as
// many hosts as choices these are exchanged only, as in the thesis.
//
// Loop is the control loop: a bounded table of what is reported, and rounds of a Rule.
//
// The package is pure: no I/O, no clock, no goroutine. Random numbers come from a seed.
// Nothing in it is safe for concurrent use. What nodes and schedulers say to each other is
// in hedera/wire.
package hedera
