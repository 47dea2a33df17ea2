package fabric

import (
	"errors"
	"fmt"
	"time"

	"weft/internal/balance"
	"weft/topology"
)

// LeafConfig says where a leaf switch is that leads its hosts' packets by paths (conga,
// luopan).
type LeafConfig struct {
	Topology *topology.Topology // the fabric as it stands: paths over links that are down are not used
	Self     topology.NodeID    // the switch, one of the edge layer
	Links    []topology.LinkID  // of BalanceConfig.Ports, in their order

	// Lease is how long packets take paths since Balance.Repair or Balance.RepairSettings was
	// called last; behind it they go by routes. 0 is for ever, where nobody calls these.
	Lease time.Duration
}

// LeafStats counts what a leaf switch does besides BalanceStats. A super-segment counts as one
// packet.
type LeafStats struct {
	Guided     uint64     `json:"guided"`         // luopan: flowcells whose path a sample decided; the others' is random
	TooLong    uint64     `json:"too_long"`       // packets left to the routes: a port to the fabric has no room for the outer header
	Refused    uint64     `json:"refused"`        // packets to which the kernel gave no outer header
	Marked     uint64     `json:"marked"`         // conga: packets that carry a mark
	Heard      uint64     `json:"heard"`          // conga: marks of other racks
	Unproven   uint64     `json:"unproven"`       // conga: marks that acknowledge nothing this rack has in flight, which do not count
	Sampled    uint64     `json:"sampled"`        // luopan: samples sent
	Learned    uint64     `json:"learned"`        // luopan: answers to them
	Unasked    uint64     `json:"unasked"`        // luopan: other answers, dropped unless the host makes samples by itself
	Answered   uint64     `json:"answered"`       // luopan: samples of others, answered for hosts of this rack
	Unanswered uint64     `json:"unanswered"`     // luopan: those that were too many, or by no path; dropped
	Shared     uint64     `json:"shared"`         // packets that took the path of another flow, whose place in the table is theirs
	Spoofed    uint64     `json:"spoofed"`        // hosts' IP-in-IP packets of a foreign source, dropped
	Late       uint64     `json:"late,omitempty"` // packets left to the routes, as the lease had ended
	Racks      []LeafRack `json:"racks,omitempty"`
}

// LeafRack is what a leaf switch knows of the paths to another rack.
type LeafRack struct {
	Rack string `json:"rack"` // its edge switch

	// Conga: by tag, how busy the busiest link of its paths is, in eighths of the link's rate;
	// as this switch sees it, and as the rack has reported it.
	Tags []LeafTag `json:"tags,omitempty"`

	// Luopan: the path that flowcells take, while its sample is good, and the round trip of
	// samples.
	Best   *int          `json:"best,omitempty"`
	RTT    time.Duration `json:"rtt_ns,omitempty"`
	Silent int           `json:"silent,omitempty"` // rounds without an answer in a row
}

// LeafTag is what is known of the paths of one of CONGA's tags.
type LeafTag struct {
	Tag    int   `json:"tag"`
	Local  uint8 `json:"local"`
	Remote uint8 `json:"remote"`
}

// sums are in the order of the enum in bpf/leaf.c, behind that of BalanceStats.
func (s *LeafStats) sums() []*uint64 {
	return []*uint64{&s.Guided, &s.TooLong, &s.Refused, &s.Marked, &s.Heard, &s.Unproven, &s.Sampled, &s.Learned, &s.Unasked, &s.Answered, &s.Unanswered,
		&s.Shared, &s.Spoofed, &s.Late}
}

// BalancesAt reports whether a rule needs AttachBalance at a switch of a layer: conga and
// luopan do at edge switches alone.
func BalancesAt(rule string, layer topology.Layer) bool {
	r, err := balance.Parse(rule)
	return err == nil && r.ByProgram() && (!r.AtLeaf() || layer == topology.LayerEdge)
}

// BalanceRoom returns by how many bytes the MTU between switches must exceed that at hosts.
func BalanceRoom(rule string) int {
	if r, err := balance.Parse(rule); err == nil && r.AtLeaf() {
		return leafOuter
	}
	return 0
}

// leafOuter is the length of the outer header.
const leafOuter = 20

func (c BalanceConfig) checkLeaf(r balance.Rule) error {
	l := c.Leaf
	if !r.AtLeaf() {
		return nil
	}
	if err := l.check(); err != nil {
		return err
	}
	switch {
	case l.Lease < 0:
		return fmt.Errorf("Leaf.Lease is %v; give a positive one, or 0 for none", l.Lease)
	case len(l.Links) != len(c.Ports):
		return errors.New("Leaf.Links must have a link for each of Ports")
	}
	return nil
}

// check says what is wrong with the fabric and the switch's place in it.
func (l LeafConfig) check() error {
	switch {
	case l.Topology == nil:
		return errors.New("Leaf.Topology is missing: conga and luopan lead packets by paths")
	case !l.Topology.Computed():
		return errors.New("Leaf.Topology is data: conga and luopan need one that is computed, such as leaf-spine:leaves=4,spines=4")
	case !l.Topology.Valid(l.Self) || l.Topology.Node(l.Self).Layer != topology.LayerEdge:
		return errors.New("Leaf.Self is no edge switch: conga and luopan are for these, other switches have their routes")
	}
	return nil
}

// upPort returns the number of the switch's port at a link, and whether it leads up.
func (l LeafConfig) upPort(link topology.LinkID) (uplink int, up bool) {
	down := 0
	for _, p := range l.Topology.Ports(l.Self) {
		if !p.Up {
			down++
		}
		if p.Link == link {
			return p.Index - down, p.Up
		}
	}
	return 0, false
}

// hostAt returns the addresses of the host at a link: its kernel's, its embedded stack's.
func (l LeafConfig) hostAt(link topology.LinkID) (addrs [2][4]byte) {
	for _, p := range l.Topology.Ports(l.Self) {
		if p.Link == link && !p.Up {
			addrs[0] = l.Topology.Node(p.Peer).Addr.As4()
			addrs[1] = l.Topology.EmbeddedAddr(p.Peer).As4()
		}
	}
	return addrs
}
