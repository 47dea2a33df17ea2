// Package schedulerlab has a lab's nodes scheduled: etcd with one member, a weft
// scheduler, and weft switch at the switches below the top, each a process of its own.
// They speak by a control network as in the thesis' testbed (§4.3.1), so that full links do
// not delay them.
package schedulerlab
