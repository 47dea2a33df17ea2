// Package simnet is a Clos fabric in memory: it carries real IPv4 packets over
// the links of a topology, at their rate, through finite queues, past switches
// that route, spread, bounce and pop labels (micro-SIDs in an outer IPv6 header)
// as weft's fabric on Linux does.
//
// Network is the pure core: no goroutine, no clock, no I/O; it takes the time
// as an argument and says when it wants to be called again. Runner drives one
// in real time and hands out devices for the hosts; package world drives one
// in virtual time, with hosts and all.
//
// Links can be made worse at any time, each direction by itself: lossy, slow,
// late, or down (Impair), and nodes can fail (Fail). Nobody in the fabric hears
// of it; when switches repair their routes, one by one or all at once, is the
// caller's to say (SetRoutes, SetTopology). What is random about it is drawn
// from Config.Seed in the order of events.
//
// Switches can be given a Meter (Config.Meter), which writes what it finds of
// congestion into packets that ask for it.
//
// A port is not a queue but the time until which it is busy, from which its
// backlog follows; so a packet costs one event per hop. What is in flight is
// bounded by what all queues hold plus what fits on the wires.
package simnet
