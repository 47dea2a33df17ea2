package topoupdate

import (
	"time"

	"weft/topology"
)

// stranger is who speaks at a port and is not the neighbour of the topology: two cables are
// swapped, or a switch takes itself for another. Nothing else is believed of it.
type stranger struct {
	node topology.NodeID
	port int
	at   time.Duration // it was heard last
	next time.Duration // it is heard again; until then a message costs nothing
}

const (
	strangerEvery = 500 * time.Millisecond
	strangerLasts = 5 * strangerEvery // after the last message
)

// meet takes note of a message of a stranger, if its MAC is right.
func (a *Agent) meet(p *port, h *header, packet []byte) {
	s := &p.stranger
	if a.now < s.next || !a.config.Topology.Valid(h.sender) {
		return
	}
	s.next = a.now + strangerEvery
	if _, err := a.ring.Verify(packet); err == nil {
		s.node, s.port, s.at = h.sender, h.senderPort, a.now
	}
}

// known returns who it is; ok is false if none was heard of late.
func (s *stranger) known(now time.Duration) (node topology.NodeID, port int, ok bool) {
	return s.node, s.port, s.at > 0 && now-s.at < strangerLasts
}
