// Package walker drives a hops.Walk by sockets: packets leave by raw sockets, and what comes back
// is seen by packet sockets at the uplinks, with the kernel's times.
package walker
