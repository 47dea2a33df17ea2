// Package throughput moves bytes by TCP between two hosts of a fabric in network
// namespaces, by weft's and others' ways, and measures the cost of each. The cost is the
// processor time of the whole machine, including the kernel's forwarding, since users pay
// all of it.
//
// Each end runs in a process of its own, a Worker, in the network namespace of its host.
// It needs Linux and root.
package throughput
