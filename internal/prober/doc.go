// Package prober finds out by itself which paths of a host's kernel are alive: it
// runs a liveness.Watcher with sockets of the host's network namespace, and
// answers the probes of peers.
//
// Probes leave by a raw socket, past the program that sprays, since each names
// its path. They come in by a packet socket: a probe that comes home has the
// host's own address as its source, which the kernel takes for a forgery.
//
// A Sampler finds out, beside it, how congested they are: it runs a probe.Sampler and a
// luopan.Table for what the program at the uplink sprays, and answers the samples of peers. Its
// packets leave by a packet socket, which any carrier may use whatever the routes.
package prober
