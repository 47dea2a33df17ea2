package topoupdate

import (
	"time"

	"weft/topology"
)

// AgentStats counts what an Agent has done since it was made.
type AgentStats struct {
	Received    uint64 // messages of any kind, rejected ones included
	Rejected    Rejects
	HellosSent  uint64
	UpdatesSent uint64
	EntriesSent uint64
	Originated  uint64 // own entries
	Outbid      uint64 // of these, those against entries of this switch's earlier start
	Changed     uint64 // received entries with news
	Refreshed   uint64 // received newer entries without news
	Repeated    uint64 // received entries that were known already
	Older       uint64 // received entries older than the known ones
	LinkDowns   uint64 // own links reported down
	Reports     uint64 // changes of an own link as reported, up or down
	Late        uint64 // Ticks so late that neighbours were given more time
	Left        bool
}

// Stats returns the counters.
func (a *Agent) Stats() AgentStats { return a.stats }

// Signed reports whether messages are signed, and unsigned ones refused.
func (a *Agent) Signed() bool { return len(a.ring.keys) > 0 && !a.ring.acceptUnsigned }

// Neighbour is the state of one port, for status.
type Neighbour struct {
	Port    int
	Node    topology.NodeID
	Carrier bool
	Hears   bool          // both directions are proved; false for servers, which never send
	Alive   bool          // the verdict on the link, before damping
	Why     string        // the reason; empty for servers
	Since   time.Duration // of the verdict, on now's clock
	Up      bool          // as reported to the fabric
	UpAt    time.Duration // when it will be reported up if it keeps working; 0: no delay
	Queued  int           // entries that wait to be sent
	// Mistakes are the times that the neighbour was taken for dead and was only late. It is
	// given more time for a minute.
	Mistakes uint64
	// Strange: Stranger speaks here, by its port StrangerPort, and should not. Cables are
	// swapped, or one of the two takes itself for another switch.
	Strange      bool
	Stranger     topology.NodeID
	StrangerPort int
}

// Neighbours returns the state of all ports in their order.
func (a *Agent) Neighbours() []Neighbour {
	list := make([]Neighbour, 0, len(a.ports))
	for i := range a.ports {
		p := &a.ports[i]
		n := Neighbour{
			Port: p.Index, Node: p.Peer, Carrier: p.carrier,
			Hears: p.adj.proven, Alive: p.works(), Why: p.adj.why, Since: p.adj.since,
			Up: !p.link.down, Mistakes: p.adj.patience.mistakes,
		}
		n.Stranger, n.StrangerPort, n.Strange = p.stranger.known(a.now)
		if t := p.link.next(); t != never {
			n.UpAt = t
		}
		p.pending.each(func(int) bool { n.Queued++; return true })
		list = append(list, n)
	}
	return list
}

// Database returns all valid entries, including the switch's own.
func (a *Agent) Database() []Entry { return a.db.entries(a.now) }
