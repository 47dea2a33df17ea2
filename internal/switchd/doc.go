// Package switchd is weft switch: the agent of a Linux switch. It joins the pure
// protocol of package topoupdate to the switch's ports (topoupdate/wire), and
// keeps the switch's routes (package fabric) as the topology that results has
// them, so that packets which are not encapsulated are led around failures, too.
//
// Start runs an agent inside of a process, as labs, benchmarks and tests do with
// many at once; Run is the daemon around it: configuration, status, signals.
//
// One goroutine owns the protocol and does nothing that waits but for its ports.
// Another one changes routes. Between them is a single snapshot, the newest.
//
// What others change of a switch's configuration is put back, as package daemon does for a
// host. The programs stay open across the re-exec, so CAP_NET_ADMIN is enough to put them
// back. A port that somebody sets down stays down.
package switchd
