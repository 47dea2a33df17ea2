// Command tailscale is a host of a tailnet of two: it runs tailscaled, the program that users
// run, of the version in go.mod and with its defaults for Linux, and at one of the hosts a
// control server, so that nothing outside is needed. It is a module of its own, so that weft
// does not depend on tailscale.
//
// It is started by weft bench throughput, which asks, by a line on standard input, for
// counters on standard output; it ends when standard input does. It needs Linux and root.
package main
