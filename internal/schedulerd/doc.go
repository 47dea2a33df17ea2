// Package schedulerd is weft scheduler: a central scheduler of elephants. It runs package
// hedera's loop on what nodes report (hedera/wire), and keeps leadership and placements on
// etcd (hedera/store).
//
// Several schedulers run. All listen; one leads. The leader takes reports, places flows once
// a period, writes what has changed to etcd, and only then tells the nodes. What etcd does not
// take in time waits, and so does the next round; what has ended or died meanwhile is
// withdrawn without it. A write that etcd refuses, as another scheduler leads, ends the term.
// If etcd does not answer, nobody is told anything: placements expire, and traffic goes on by
// the nodes' own rules. The next leader begins with the placements that are stored, so that
// nothing flaps.
//
// A goroutine reads the socket, one campaigns and leads, one learns who else leads. They
// share the server's state under one lock, which nobody holds while waiting for etcd.
package schedulerd
