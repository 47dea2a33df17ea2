package workload

import (
	"slices"

	"weft/topology"
)

// span is a run of hosts' numbers, the last excluded.
type span struct{ first, end topology.NodeID }

func (s span) len() int { return int(s.end - s.first) }

// places says where hosts are: those of a rack have consecutive numbers, and those
// of a pod.
type places struct {
	hosts     int
	rack, pod []span // by host
}

func placesOf(t *topology.Topology) *places {
	n := t.NumHosts()
	p := &places{hosts: n, rack: make([]span, n), pod: make([]span, n)}
	p.mark(p.rack, t.EdgeOf)
	p.mark(p.pod, func(h topology.NodeID) topology.NodeID {
		// A pod is known by its first aggregation switch.
		ports := t.Ports(t.EdgeOf(h))
		return ports[slices.IndexFunc(ports, func(p topology.Port) bool { return p.Up })].Peer
	})
	return p
}

// mark finds the runs of hosts that have the same key.
func (p *places) mark(to []span, key func(topology.NodeID) topology.NodeID) {
	for first := topology.NodeID(0); int(first) < p.hosts; {
		end, k := first+1, key(first)
		for int(end) < p.hosts && key(end) == k {
			end++
		}
		for h := first; h < end; h++ {
			to[h] = span{first, end}
		}
		first = end
	}
}

// Where bounds the destinations of a host.
type Where uint8

// Where destinations are.
const (
	Anywhere  Where = iota // any host but itself
	OtherRack              // of another edge switch
	OtherPod
)

func (w Where) String() string { return [...]string{"anywhere", "another rack", "another pod"}[w] }

// near is what is too near a host.
func (p *places) near(h topology.NodeID, w Where) span {
	switch w {
	case OtherRack:
		return p.rack[h]
	case OtherPod:
		return p.pod[h]
	}
	return span{h, h + 1}
}
