package control

import (
	"errors"
	"fmt"

	"weft/topology"
)

// Truth returns the fabric without the links that do not work: cut, without
// power at an end, or deaf in a direction.
func (f *Fabric) Truth() *topology.Topology {
	var down []topology.LinkID
	for l := range f.cables {
		if c := &f.cables[l]; !f.carrier(topology.LinkID(l)) || c.deaf[0] || c.deaf[1] {
			down = append(down, topology.LinkID(l))
		}
	}
	return f.top.Without(down...)
}

// maxErrors bounds what Check returns: what follows is the same again.
const maxErrors = 20

// Check compares what every agent and every listener believes with the truth:
// every link that works is held to work, and every link that does not, and that
// one of the node's packets could come to, is held to be down. So it must be once
// nothing has happened for MaxAge, the longest damping, and the time of a few
// messages.
func (f *Fabric) Check() error {
	truth := f.Truth()
	var errs []error
	for i := range f.nodes {
		id := topology.NodeID(i)
		var believed *topology.Topology
		switch n := &f.nodes[i]; {
		case n.agent != nil:
			believed = n.agent.Topology()
		case n.listener != nil:
			believed = n.listener.Topology()
		default:
			continue
		}
		for _, l := range believed.Down() {
			if truth.Live(l) {
				errs = append(errs, fmt.Errorf("%s holds %s to be down, but it works", f.top.Node(id).Name, f.top.LinkName(l)))
			}
		}
		for _, l := range Blocking(truth, id) {
			if believed.Live(l) {
				errs = append(errs, fmt.Errorf("%s holds %s to work, but it does not", f.top.Node(id).Name, f.top.LinkName(l)))
			}
		}
		if len(errs) > maxErrors {
			break
		}
	}
	return errors.Join(errs...)
}

// Blocking returns the dead links that packets of a node's can come to: they go
// up over links that work, turn once, and go down over links that work. Hosts'
// own links are no choice and left out.
func Blocking(truth *topology.Topology, from topology.NodeID) []topology.LinkID {
	w := walker{truth: truth, seen: make([][2]bool, truth.NumNodes()), dead: map[topology.LinkID]bool{}}
	if int(from) < truth.NumHosts() {
		uplink := truth.Ports(from)[0]
		if !truth.Live(uplink.Link) {
			return nil
		}
		from = uplink.Peer
	}
	w.walk(from, 0)
	list := make([]topology.LinkID, 0, len(w.dead))
	for l := range w.dead {
		list = append(list, l)
	}
	return list
}

// walker searches a Clos for dead links.
type walker struct {
	truth *topology.Topology
	seen  [][2]bool // per node: on the way up, on the way down
	dead  map[topology.LinkID]bool
}

func (w *walker) walk(at topology.NodeID, down int) {
	if w.seen[at][down] {
		return
	}
	w.seen[at][down] = true
	for _, p := range w.truth.Ports(at) {
		switch {
		case down == 1 && p.Up || int(p.Peer) < w.truth.NumHosts():
		case !w.truth.Live(p.Link):
			w.dead[p.Link] = true
		case p.Up:
			w.walk(p.Peer, 0)
		default:
			w.walk(p.Peer, 1)
		}
	}
}
