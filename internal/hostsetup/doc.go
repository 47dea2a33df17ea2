// Package hostsetup configures a host for weft and puts back what was there: the TUN
// device's settings and addresses, routes, rules and sysctls (Plan, Apply), the host's
// lock and the record by which a later process undoes what a killed one left (Cleanup),
// and what must be known of the uplink and its neighbour (FindUplink).
//
// It knows the host and one uplink. It does not know policies, how packets are
// encapsulated or what switches do: of internal/hostprog it only removes leftovers.
//
// # Why it is so
//
// A Plan is data. So it can be compared with the kernel at any time, and what others have
// changed can be put back. What the rules and settings replace is written to a state file
// first: a later process can undo them after a crash.
package hostsetup
