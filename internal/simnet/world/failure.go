package world

import (
	"fmt"

	"weft/internal/simnet"
	"weft/topology"
)

// Impair replaces what is wrong with the link between two neighbours, by name,
// in the direction from one to the other.
func (w *World) Impair(from, to string, i simnet.Impairment) {
	l, d, err := w.link(from, to)
	if err == nil {
		err = w.net.Impair(l, d, i)
	}
	w.fail(err)
}

// Cut takes the link between two neighbours down in both directions, and
// undoes other impairments.
func (w *World) Cut(a, b string) {
	w.Impair(a, b, simnet.Impairment{Down: true})
	w.Impair(b, a, simnet.Impairment{Down: true})
}

// Mend undoes what was done to the link between two neighbours, in both
// directions.
func (w *World) Mend(a, b string) {
	w.Impair(a, b, simnet.Impairment{})
	w.Impair(b, a, simnet.Impairment{})
}

// Fail makes a switch or a host fail without a sign, until Heal: it loses what
// is in it and on its way to it. A host's stack goes on, cut off.
func (w *World) Fail(name string) {
	if id := w.node(name); id >= 0 {
		w.net.Fail(id)
	}
}

// Heal undoes Fail.
func (w *World) Heal(name string) {
	if id := w.node(name); id >= 0 {
		w.net.Heal(id)
	}
}

// Deafen has switches take no outer headers off any more, without a sign; all else
// they forward.
func (w *World) Deafen(names ...string) { w.setBounce(false, names) }

// Undeafen undoes Deafen.
func (w *World) Undeafen(names ...string) { w.setBounce(true, names) }

func (w *World) setBounce(bounces bool, names []string) {
	for _, name := range names {
		if id := w.node(name); id >= 0 {
			w.net.SetBounce(id, bounces)
		}
	}
}

// node returns the number of a node, -1 if there is none.
func (w *World) node(name string) topology.NodeID {
	n, err := w.fabric.Lookup(name)
	if err != nil {
		w.fail(err)
		return -1
	}
	return n.ID
}

// Link returns the number of the link between two neighbours.
func (w *World) Link(a, b string) topology.LinkID {
	l, _, err := w.link(a, b)
	w.fail(err)
	return l
}

func (w *World) link(from, to string) (topology.LinkID, simnet.Direction, error) {
	a, err := w.fabric.Lookup(from)
	if err != nil {
		return 0, 0, err
	}
	b, err := w.fabric.Lookup(to)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range w.fabric.Ports(a.ID) {
		if p.Peer == b.ID && p.Up {
			return p.Link, simnet.Upward, nil
		} else if p.Peer == b.ID {
			return p.Link, simnet.Downward, nil
		}
	}
	return 0, 0, fmt.Errorf("there is no link from %s to %s", from, to)
}

// SetTopology tells the switches and all hosts which links are live: t is
// Topology() without some. It impairs nothing.
func (w *World) SetTopology(t *topology.Topology) {
	if err := w.net.SetTopology(t); err != nil {
		w.fail(err)
		return
	}
	w.SetHosts(t)
}

// SetHosts is SetTopology for hosts alone: those named, which start if need be,
// or all that have started. Of a Kernel it is the daemon that is told, or the next one.
func (w *World) SetHosts(t *topology.Topology, names ...string) {
	for _, name := range names {
		if w.Host(name) != nil {
			w.tell(w.node(name), t)
		}
	}
	if len(names) > 0 {
		return
	}
	for id := range w.hosts {
		w.tell(topology.NodeID(id), t)
	}
}

func (w *World) tell(id topology.NodeID, t *topology.Topology) {
	switch k := w.kernels[id]; {
	case k != nil:
		k.setTopology(t)
	case w.hosts[id] != nil:
		w.fail(w.hosts[id].SetTopology(t))
	}
}

// SetSwitch is SetTopology for one switch alone, by name.
func (w *World) SetSwitch(name string, t *topology.Topology) {
	if id := w.node(name); id >= 0 {
		w.fail(w.net.SetRoutes(id, t))
	}
}
