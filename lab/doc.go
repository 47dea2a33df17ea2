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
// # Graphs
//
// A lab is built of a computed fabric or of a graph. Both are a plant to this package: nodes,
// links, ports and a plan for each node (fabric.Plan, fabric.PlanGraph). So what builds,
// reports, breaks and mends is the same code. The switches of a graph have no planned routes
// to each other: they run FRR (internal/frr), configured as internal/switchconf prints it for
// operators, and Up returns when each kernel has all the shortest ways.
//
// FRR's daemons are found by their locked files in the lab's run directory, even when their
// namespace has lost its name, and are killed with the lab.
//
// A rack is routed, as in the computed lab: a port and a route for each host. A bridge for
// each rack would be nearer to some operators' switches, but a host at two of them would be
// lost to the rack's other half when one of its links fails.
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
