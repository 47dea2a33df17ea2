package throughput

import (
	"fmt"
	"slices"
	"time"

	"weft/fabric"
	"weft/topology"
)

// spine is a bouncing switch and its port towards the receiver.
type spine struct {
	node topology.NodeID
	port string
}

// between lists the nodes on the paths from a host to another, and of these the
// bouncing switches.
func between(t *topology.Topology, from, to topology.NodeID) (nodes []topology.NodeID, spines []spine, err error) {
	paths := t.Paths(from, to)
	for _, n := range paths.Live {
		bounce := paths.Bounce(n)
		path, err := t.Path(from, to, bounce)
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, path.Hops...)
		next := path.Hops[slices.Index(path.Hops, bounce)+1]
		ports := t.Ports(bounce)
		i := slices.IndexFunc(ports, func(p topology.Port) bool { return p.Peer == next })
		spines = append(spines, spine{bounce, fmt.Sprintf(fabric.DefaultPortFormat, ports[i].Index)})
	}
	return nodes, spines, nil
}

// spineCount is how much a spine has sent towards the receiver, and when it was read. A
// busy machine reads one spine much later than another.
type spineCount struct {
	bytes float64
	at    time.Time
}

// countSpines reads all spines.
func (b *bench) countSpines() ([]spineCount, error) {
	var all []spineCount
	for _, s := range b.spines {
		ports, err := b.lab.PortBytes(s.node)
		if err != nil {
			return nil, err
		}
		for _, p := range ports {
			if p.Port == s.port {
				all = append(all, spineCount{float64(p.TxBytes), time.Now()})
			}
		}
	}
	return all, nil
}
