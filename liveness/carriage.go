package liveness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/topology"
)

// Carriage says to which racks the carrier is used, and how long packets may be. The edge
// switch identifies a rack. A Carriage never changes, so it is safe for concurrent use. A
// nil Carriage means that the carrier is used everywhere.
type Carriage struct {
	edges *racks // shared
	kinds []verdict
	racks map[topology.NodeID]verdict // what differs from its kind's
}

// racks are those of a fabric. They are not written to once they are made.
type racks struct {
	kind map[topology.NodeID]int32 // of each edge switch but the own; -1: none is watched
}

// verdict is on a rack.
type verdict struct {
	plain bool
	early bool // it is plain because so little is known yet
	mtu   int
	why   string
}

func (c *Carriage) of(edge topology.NodeID) verdict {
	if c == nil {
		return verdict{}
	}
	if v, ok := c.racks[edge]; ok {
		return v
	}
	if k, ok := c.edges.kind[edge]; ok && k >= 0 {
		return c.kinds[k]
	}
	return verdict{}
}

// Plain reports whether packets to a rack go without the carrier, by the kernel's own
// routes. It is false for the host's own rack, which needs no carrier.
func (c *Carriage) Plain(edge topology.NodeID) bool { return c.of(edge).plain }

// MTU is the longest packet, without the outer header, in bytes, that the paths in use to
// a rack carry. It is 0 if that is not known: full-size probes are off, or the rack needs
// no carrier.
func (c *Carriage) MTU(edge topology.NodeID) int { return c.of(edge).mtu }

// Why gives the reason for Plain and MTU in words; "" if there is nothing to say.
func (c *Carriage) Why(edge topology.NodeID) string { return c.of(edge).why }

// Used reports whether the carrier is used to any rack.
func (c *Carriage) Used() bool {
	return c == nil || slices.ContainsFunc(c.Racks(), func(edge topology.NodeID) bool { return !c.Plain(edge) })
}

// Racks returns the edge switches of all racks but the host's own, in ascending order.
func (c *Carriage) Racks() []topology.NodeID {
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.edges.kind))
}

// Equal reports whether two Carriages say the same.
func (c *Carriage) Equal(d *Carriage) bool {
	if c == nil || d == nil {
		return c == d
	}
	return slices.Equal(c.kinds, d.kinds) && maps.Equal(c.racks, d.racks) &&
		(c.edges == d.edges || maps.Equal(c.edges.kind, d.edges.kind))
}

// Change is a change that is the same for all of its Racks.
type Change struct {
	Racks []topology.NodeID // edge switches
	Plain bool
	MTU   int
	Why   string
}

// maxRacks is how many racks a Change's Text names.
const maxRacks = 4

// Text returns a line for the log. t is the topology of the Carriage. usual is the
// longest packet that the carrier takes anywhere, without the outer header, in bytes.
func (c *Change) Text(t *topology.Topology, carrier string, usual int) string {
	var names []string
	for _, edge := range c.Racks[:min(len(c.Racks), maxRacks)] {
		names = append(names, t.Node(edge).Name)
	}
	text := "racks " + strings.Join(names, ", ")
	if more := len(c.Racks) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case c.Plain:
		text += ": packets go plain, as the kernel's routes have them"
	case c.MTU > 0 && c.MTU < usual:
		text += fmt.Sprintf(": carried by %s, in packets of at most %d bytes", carrier, c.MTU)
	default:
		text += ": carried by " + carrier
	}
	if c.Why != "" {
		text += "; " + c.Why
	}
	return text
}

// Changes returns, for the log, the racks whose Plain or MTU differ from an earlier
// Carriage of the same fabric. since is nil at the beginning, when all racks are plain. A
// rack that stays plain is included once its first reason is known. A new reason for
// leaving out some of the paths is included, too. Racks that have changed alike are one
// Change.
func (c *Carriage) Changes(since *Carriage) (all []Change) {
	at := make(map[verdict]int)
	for _, edge := range c.Racks() {
		was, is := verdict{plain: true, early: true}, c.of(edge)
		if since != nil {
			was = since.of(edge)
		}
		same := was.plain == is.plain && was.mtu == is.mtu && was.why == is.why
		if is.plain && was.plain {
			same = is.early || !was.early
		}
		if same {
			continue
		}
		i, ok := at[is]
		if !ok {
			i = len(all)
			at[is] = i
			all = append(all, Change{Plain: is.plain, MTU: is.mtu, Why: is.why})
		}
		all[i].Racks = append(all[i].Racks, edge)
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(a.Racks[0], b.Racks[0]) })
	return all
}

// Carriage says to which racks the carrier is used. The pointer changes only when the
// content does.
func (w *Watcher) Carriage() *Carriage {
	w.Topology()
	return w.proof.carriage
}

// carry makes the Carriage of what has been proved, for the paths that are in use.
func (w *Watcher) carry() {
	next := &Carriage{edges: w.proof.edges}
	for i := range w.kinds {
		next.kinds = append(next.kinds, w.verdictOn(&w.kinds[i], nil))
	}
	for edge, r := range w.proof.racks {
		k := r.kind
		if (r.gate.open || !w.proof.kinds[k].gate.open) && !r.small() && !w.slow(r) {
			continue // as its kind
		}
		if v := w.verdictOn(&w.kinds[k], r); v != next.kinds[k] {
			if next.racks == nil {
				next.racks = make(map[topology.NodeID]verdict)
			}
			next.racks[edge] = v
		}
	}
	if !w.proof.carriage.Equal(next) {
		w.proof.carriage = next
	}
}

// verdictOn is the verdict on a rack with watched destinations, or, if r is nil, on
// those of a kind without.
func (w *Watcher) verdictOn(k *kind, r *rackProof) (v verdict) {
	if w.proof.off {
		return v
	}
	g := &w.proof.kinds[k.number].gate
	if r != nil && g.open {
		g = &r.gate
	}
	level, by := w.sizeOf(k, r)
	if w.config.MTU > 0 {
		v.mtu = w.sizes[min(int(level), len(w.sizes)-1)] - w.config.overhead()
	}
	switch {
	case g.open:
		v.why = w.remarks(k, r, level, by)
	case w.config.Require:
		v.why = "used though not proved, as required: " + g.why
	default:
		v.plain, v.early, v.why = true, !g.ever && strings.HasPrefix(g.why, notYet), g.why
	}
	return v
}
