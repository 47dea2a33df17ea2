// Package throughput moves one TCP connection between two hosts of a fabric
// in network namespaces by every way there is, weft's and others', and
// measures what each costs: the processor time of the whole machine, the
// kernel's forwarding included, since that is what a user pays.
//
// Each end runs in a process of its own, a Worker, in the network namespace
// of its host. It needs Linux and root.
package throughput
