// Package failover measures what happens to TCP when a core switch or a core link dies
// under load, in a lab of network namespaces: how long hosts still send packets to it,
// what the fabric still carries, and whether any connection is lost. Figure12 repeats
// DRB's Fig. 12. Soak checks transfers by their hashes while links and switches fail at
// random.
package failover
