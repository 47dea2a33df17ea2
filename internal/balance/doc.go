// Package balance says how a switch spreads packets of hosts that know nothing of weft over
// the next hops of a route: its rules, their names and parameters, and what each rule
// chooses.
//
// A rule decides for a packet, or for a flowlet, by which step of a Set it goes. Package
// fabric has the eBPF program that decides in the same way, bit for bit. A Chooser is the
// oracle of that program.
//
//	rb       a random step for each packet
//	rrb      the next step for each packet that a CPU handles, whoever sends it
//	drb      the next step for each packet of a pair of hosts
//	letflow  a random hash for each flowlet: what a pause separates (LetFlow; Luopan §6)
//	drill    the least loaded of d random steps and m remembered ones (DRILL §3.2)
//
// Two kinds are for leaf switches, which lead packets by whole paths. A Leaf is the oracle of
// fabric/bpf/leaf.c:
//
//	conga   the least max(local, remote) load for each flowlet (CONGA §3)
//	luopan  the best of d sampled paths for each flowcell (Luopan §3)
//
// Of routes, ecmp and two-level (thesis §3.1.3) there is the name alone: the kernel's tables
// decide. Of classifier (thesis §3.1.6) there are the parameters: package classifier decides.
//
// With drb at each switch the paths of a pair of hosts follow each other in digit-reversed
// order (DRB §3.1.2): of n ports an edge switch takes the next one for each packet, and the
// switch behind it sees every n-th of these packets and takes its own next one. With rrb the
// packets of all hosts share one turn on each CPU, so a pair's packets are spread less
// evenly.
//
// A super-segment is one packet here: it takes one decision, and stays whole.
//
// The package is pure: it takes the time as an argument and owns no goroutine, timer or
// lock. A Chooser is not safe for concurrent use.
package balance
