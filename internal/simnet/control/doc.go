// Package control is the control plane of a whole fabric in virtual time: a
// topoupdate.Agent on every switch, a topoupdate.Listener on every host, and
// between them cables that delay, lose, are cut, or go deaf in one direction
// while their carrier stays. Switches fail and are repaired, agents and hosts are
// started anew, clocks are set back.
//
// Fabric is a discrete-event simulation, single-threaded and deterministic: the
// same configuration and calls give the same events at the same nanoseconds. It
// does no I/O. Check compares what everybody believes with what is the case.
package control
