package daemon

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"weft/liveness"
	"weft/topology"
)

// ReachStatus counts the other racks by how packets reach them, in both families.
type ReachStatus struct {
	Racks   int `json:"racks"`
	Plain   int `json:"plain"`   // as the kernel's own routes have it
	Limited int `json:"limited"` // by the carrier, and not by all paths or not in full size
	// InUse lists the racks that packets are sent to, those with faults first. Unnamed counts
	// further ones.
	InUse   []RackPaths `json:"in_use,omitempty"`
	Unnamed int         `json:"unnamed,omitempty"`
}

// RackPaths is how the paths to a rack are, by the probes to its hosts that packets are sent
// to. A path is up if it is to each of these.
type RackPaths struct {
	Rack   string  `json:"rack"`
	Prefix string  `json:"prefix,omitempty"`
	Plain  bool    `json:"plain"`
	Paths  int     `json:"paths"`
	Up     int     `json:"up"`
	Hosts  int     `json:"hosts"`          // probed
	Mute   int     `json:"mute,omitempty"` // hosts that do not answer probes
	RTT    float64 `json:"rtt_ms"`         // the median of the paths'
	Most   float64 `json:"rtt_most_ms"`    // of one path
	Loss   float64 `json:"loss"`           // part of the latest probes, over all paths
	Worst  string  `json:"worst,omitempty"`
	Why    string  `json:"why,omitempty"` // of the worst path
}

// maxRackPaths bounds the racks of a status that are listed path by path.
const maxRackPaths = 1000

// rackPaths sums up the state of paths by rack.
func rackPaths(t *topology.Topology, all []liveness.PathHealth, plain func(edge topology.NodeID) bool) (list []RackPaths) {
	type sum struct {
		RackPaths
		down  map[int]bool // by path
		hosts map[netip.Addr]bool
		rtts  []time.Duration
		loss  float64
		n     int
	}
	sums := make(map[topology.NodeID]*sum)
	var order []topology.NodeID
	for _, p := range all {
		_, edge, ok := t.HostAt(p.Dst)
		if !ok {
			continue // of another topology
		}
		s := sums[edge]
		if s == nil {
			s = &sum{RackPaths: RackPaths{Rack: t.Node(edge).Name, Plain: plain(edge)}, down: make(map[int]bool), hosts: make(map[netip.Addr]bool)}
			if prefixes := t.RackPrefixesOf(edge, p.Dst.Is6()); len(prefixes) > 0 {
				s.Prefix = prefixes[0].String()
			}
			sums[edge] = s
			order = append(order, edge)
		}
		s.n++
		s.loss += p.Loss
		mute := p.State == liveness.Mute
		s.hosts[p.Dst] = s.hosts[p.Dst] || mute
		s.down[p.Path] = s.down[p.Path] || !usable(p.State)
		if p.RTT > 0 {
			s.rtts = append(s.rtts, p.RTT)
		}
		if rank(p.State) > rank(liveness.Health(s.Worst)) {
			s.Worst, s.Why = string(p.State), p.Why
		}
	}
	for _, edge := range order {
		s := sums[edge]
		s.Paths, s.Hosts, s.Loss = len(s.down), len(s.hosts), s.loss/float64(s.n)
		for _, down := range s.down {
			if !down {
				s.Up++
			}
		}
		for _, mute := range s.hosts {
			if mute {
				s.Mute++
			}
		}
		if slices.Sort(s.rtts); len(s.rtts) > 0 {
			s.RTT, s.Most = milliseconds(s.rtts[len(s.rtts)/2]), milliseconds(s.rtts[len(s.rtts)-1])
		}
		list = append(list, s.RackPaths)
	}
	slices.SortStableFunc(list, func(a, b RackPaths) int { return cmp.Compare(b.badness(), a.badness()) })
	return list
}

// badness is the greater the worse a rack's paths are.
func (r *RackPaths) badness() float64 {
	b := r.Loss
	if r.Plain {
		b += 2
	}
	if r.Paths > 0 {
		b += float64(r.Paths-r.Up) / float64(r.Paths)
	}
	return b
}

// usable reports whether packets go by a path of that state. Nothing is known of a mute
// host's paths, which are used.
func usable(s liveness.Health) bool {
	return s == liveness.Up || s == liveness.Suspicious || s == liveness.Mute
}

// rank orders the states that are worth telling, the gravest with the highest.
func rank(s liveness.Health) int {
	return slices.Index([]liveness.Health{liveness.Suspicious, liveness.Slow, liveness.Quarantined, liveness.Down}, s)
}

// count adds the racks of a fabric.
func (s *ReachStatus) count(by *liveness.Carriage) {
	for _, edge := range by.Racks() {
		s.Racks++
		switch {
		case by.Plain(edge):
			s.Plain++
		case by.Why(edge) != "":
			s.Limited++
		}
	}
}

// bounceName is the name of a bouncing switch.
func bounceName(t *topology.Topology, via netip.Addr) string {
	if id, ok := t.ByAddr(via); ok {
		return t.Node(id).Name
	}
	return via.String()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
