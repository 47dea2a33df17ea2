package thesis

import (
	"weft/bench/papers"
	"weft/bench/sim/fluid"
	"weft/topology"
)

// neighbours says how near to each other the receivers of neighbours are in the worst cases,
// of which the thesis has a property alone, and five mappings. A mapping that one writes down
// by hand is as regular as one of the two ends; the experiment draws any.
var neighbours = papers.Decision{
	Parameter: "receivers of neighbours in the worst cases", About: []string{"inter-pod incoming", "same-ID outgoing"},
	Ends: "as near to each other as the pattern allows, or as far",
	Values: []papers.DecisionValue{
		{Name: "as near as can be", Replace: map[string]string{"neighbours": near}},
		{Name: "as far as can be", Replace: map[string]string{"neighbours": far}},
	},
}

// The rules of receivers.
const (
	// near has the hosts of a rack send to one rack if the pattern allows that, else to one
	// pod, and those of a pod to one pod if it allows that.
	near = "near"
	// far has the hosts of a rack send to two pods, or to two racks where they may send to one
	// pod alone.
	far = "far"
)

// receivers chooses whom hosts of a fat-tree of k=4 send to, one after the other.
type receivers struct {
	f   *fluid.Fabric
	to  []topology.NodeID // up to now
	may func(src, dst topology.NodeID) bool
	ids func(a, b int) bool // to which rack-mates may send
}

// by is may, and a rule besides.
func (r receivers) by(rule string) func(src, dst topology.NodeID) bool {
	allow := map[string]func(src, dst topology.NodeID) bool{near: r.near, far: r.far}[rule]
	if allow == nil {
		return r.may
	}
	return func(src, dst topology.NodeID) bool { return r.may(src, dst) && allow(src, dst) }
}

func (r receivers) near(src, dst topology.NodeID) bool {
	switch src % 4 {
	case 1, 3: // beside a rack-mate
		mate := r.to[src-1]
		inRack := func(h topology.NodeID) bool { return r.f.Rack(h) == r.f.Rack(mate) }
		if r.some(src, mate, inRack) {
			return inRack(dst)
		}
		return r.f.Pod(dst) == r.f.Pod(mate)
	case 2: // a pod's second rack
		inPod := func(h topology.NodeID) bool { return r.f.Pod(h) == r.f.Pod(r.to[src-1]) }
		for h := range r.to {
			if inPod(topology.NodeID(h)) && r.may(src, topology.NodeID(h)) {
				return inPod(dst)
			}
		}
	}
	return true
}

func (r receivers) far(src, dst topology.NodeID) bool {
	if src%2 == 0 {
		return true
	}
	mate := r.to[src-1]
	otherPod := func(h topology.NodeID) bool { return r.f.Pod(h) != r.f.Pod(mate) }
	if r.some(src, mate, otherPod) {
		return otherPod(dst)
	}
	return r.f.Rack(dst) != r.f.Rack(mate)
}

// some reports whether a host may send to another host than its rack-mate, of which something
// is so.
func (r receivers) some(src, mate topology.NodeID, so func(topology.NodeID) bool) bool {
	for n := range r.to {
		if h := topology.NodeID(n); h != mate && so(h) && r.may(src, h) && r.ids(int(mate)%2, n%2) {
			return true
		}
	}
	return false
}
