// Package apps measures what real programs of Debian take over a lab, by who spreads packets:
// OpenMPI, redis-benchmark, pgbench, wrk with nginx, iperf3 and rsync.
//
// Every host runs a server and a client, whose server is at a host in another rack, by a
// permutation of each round. All clients start at the same time, so that their paths collide.
// Programs are as they come: what they print is read by package output.
//
// Namespaces share one file system. So each program at each host has a directory of its own,
// in which it runs, and which TMPDIR names.
package apps
