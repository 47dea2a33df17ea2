// Package lab builds a fabric in network namespaces of this machine: one per node, joined
// by veth links with a rate and a queue, configured by the plans of package fabric (Up,
// Hold, Down). It reports what every node has counted (Lab.Status). It makes links and
// switches fail and heal, with or without the switches' knowledge (Lab.Fail, Lab.Heal). It
// mends what is no longer as it was built.
//
// A lab knows nodes, links and failures. It does not know how a host sprays: it has no
// policy, no program of a host (internal/hostprog) and no set-up of a host
// (internal/hostsetup).
//
// # Why it is so
//
// A port has two classes behind one rate: pfifo_fast under tbf. So hellos and probes pass
// full queues, as in a switch that is configured for that. Links fail loudly (the upper end
// is set down) or silently (a filter drops what comes in).
//
// A lab writes its state before it builds, and lab names contain no dash. So Down finds
// everything by prefix after a crash. A lab that is held (weft demo) is locked for the life
// of the process.
package lab
