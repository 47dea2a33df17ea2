// Package world runs whole weft hosts over a simnet.Network in virtual time:
// the real stack, TCP included, on a fabric that is a model. A scenario takes
// as long as its packets take to compute, and gives the same packets at the
// same nanoseconds every time:
//
//	w := world.New(world.Config{Topology: "fat-tree:k=4", Links: simnet.Config{RateBits: 10e9}, Seed: 1})
//	defer w.Close()
//	w.Impair("a0.1", "e0.1", simnet.Impairment{Loss: 0.01})
//	f := w.Flow("h0.0.2", "h0.1.2", 10<<20)
//	err := w.Run(10 * time.Second)
//	fmt.Println(f.Goodput(), w.Trace())
//
// One goroutine does everything, one event at a time: the arrival of a packet,
// a timer, a call of an application. At one time, packets come before timers,
// and each kind in the order of its causes. Netstack's own goroutines run only
// while that one waits for them.
//
// Mistakes in a scenario, such as a host that does not exist, are returned by
// Run, so that a scenario reads without error handling.
package world
