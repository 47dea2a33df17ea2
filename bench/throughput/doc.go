// Package throughput moves one TCP connection between two hosts of a fabric in
// network namespaces in every way, weft's and others', and measures the cost of
// each: the processor time of the whole machine with the kernel's forwarding,
// since users pay all of it.
//
// Each end runs in a process of its own, a Worker, in the network namespace
// of its host. It needs Linux and root.
package throughput
