// Package switchd is weft switch: the agent of a Linux switch. It runs the pure protocol of
// package topoupdate over the switch's ports (topoupdate/wire). It keeps the switch's
// routes (package fabric) up to date with the topology, so that packets without
// encapsulation go around failures, too.
//
// Start runs an agent in this process. Labs, benchmarks and tests start many at once. Run
// is the daemon around one agent: configuration, status, signals.
//
// One goroutine owns the protocol, and waits for nothing but its ports. Another one changes
// routes. The first leaves a single snapshot for the second, the newest.
//
// The agent undoes what others change of a switch's configuration, as package daemon does
// for a host. The programs stay open across the re-exec, so CAP_NET_ADMIN is enough to put
// them back. A port that somebody sets down stays down.
package switchd
