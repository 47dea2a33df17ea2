// Package lab builds a fabric in network namespaces of this machine: one per node, joined
// by veth links with a rate and a queue, configured by the plans of package fabric (Up,
// Hold, Down). It reports what every node has counted (Lab.Status), makes links and
// switches fail and heal, with or without the switches' knowledge (Lab.Fail, Lab.Heal),
// and mends what is no longer as it was built.
//
// A lab knows nodes, links and failures. It does not know how a host sprays: no policy, no
// program of a host's (internal/hostprog), no set-up of a host's (internal/hostsetup).
package lab
