// Package fct measures flow completion times (CONGA §5.2, DRILL §4) of real TCP in a lab of
// network namespaces: flows begin at the times of a Poisson process, their sizes follow a
// workload of the papers, and rows differ in who balances the load.
//
// A flow is a connection of its own, as in DRILL's simulations. (CONGA's program keeps three
// connections to each server open, and requests flows on them.) The sender connects, sends
// the flow's bytes and ends its side. The receiver answers how many bytes have arrived. The
// completion time is the sender's, from the call that connects to that answer, so it
// includes a handshake and a confirmation, a round trip each. In rows with the kernel's TCP
// that call opens the socket in the host's network namespace, for which a thread enters it:
// their times contain that, as does the flow of one byte that ideal times are from.
//
// Some traffics have jobs, of which a flow is a part, and flows that begin when another one has
// ended (plan). A workload file (File) has the flows of a run. Simulate plays the same flows in
// the packet-level simulator.
//
// A flow without an answer at the deadline is unfinished. It counts as if it ended at the
// deadline, so means and percentiles are then too low, but not by as much as without it.
package fct
