// Package prober finds out which paths of a host's kernel are alive. It runs a
// liveness.Watcher with sockets of the host's network namespace, and answers the probes
// of peers.
//
// Probes leave by a raw socket, past the program that sprays, since each names its path.
// They come in by a packet socket: a probe that comes home has the host's own address as
// its source, and the kernel would drop it as a forgery.
//
// A Sampler runs beside it and measures how congested the paths are. It runs a
// probe.Sampler and a luopan.Table for the traffic that the program at the uplink sprays,
// and answers the samples of peers. Its packets leave by a packet socket, which any
// carrier may use whatever the routes.
package prober
