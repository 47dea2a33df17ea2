package session

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	packet "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"weft/topoupdate/bgp"
)

// neighbor is what is known of a switch's session.
type neighbor struct {
	Neighbor
	sends    []packet.Family // in the session, nil while there is none
	ended    []packet.Family // of these, of which all has come
	since    time.Time       // when the session began
	heard    bool            // it has sent all that it had, now or in an earlier session
	sessions uint64
	refused  string      // why no session is wanted
	again    *time.Timer // when it ends, or another one is wanted
}

const (
	// Patience is how long a switch may take to tell that it has sent all its routes (RFC
	// 4724). Not every switch does.
	Patience = 5 * time.Second
	// refusedFor is for how long there is no session with a switch that sends too much.
	refusedFor = time.Minute
)

// peer takes note of the beginning or end of a session. After the end, what was heard holds
// until the next session.
func (s *Session) peer(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
	if e.Type != apiutil.PEER_EVENT_STATE {
		return
	}
	addr, up := e.Peer.State.NeighborAddress, e.Peer.State.SessionState == packet.BGP_FSM_ESTABLISHED
	s.mu.Lock()
	n := s.neighbors[addr]
	if n == nil {
		s.mu.Unlock()
		return
	}
	was := n.sends != nil
	switch {
	case up && !was:
		n.sends, n.ended, n.since, n.refused = familiesOf(e.Peer.State.RemoteCap), nil, time.Now(), ""
		n.sessions++
		s.table.Stale(addr)
	case !up && was:
		n.sends, n.ended = nil, nil
	}
	s.mu.Unlock()
	if was != up {
		s.config.Log.Info("session", "neighbor", addr, "established", up)
		s.config.Changed()
	}
}

// tooMany ends the session of a neighbour that sends more routes than there is place for:
// GoBGP keeps all. After a while there is another one.
func (s *Session) tooMany(n *neighbor) {
	if n.refused != "" {
		return
	}
	n.refused = fmt.Sprintf("neighbor %v sends more than %d routes, which is all that there is place for; there is no session with it for %v", n.Addr, bgp.Share(len(s.neighbors)), refusedFor)
	s.config.Log.Warn(n.refused)
	addr := n.Addr.String()
	n.again = time.AfterFunc(0, func() { // GoBGP waits for who is called with its news
		_ = s.server.DisablePeer(context.Background(), &api.DisablePeerRequest{Address: addr}) // fails only after Close
		s.mu.Lock()
		defer s.mu.Unlock()
		n.again = time.AfterFunc(refusedFor, func() {
			_ = s.server.EnablePeer(context.Background(), &api.EnablePeerRequest{Address: addr})
		})
	})
}

// endOf takes note of the end of what a neighbour had when its session began.
func (s *Session) endOf(p *apiutil.Path) {
	s.mu.Lock()
	if n := s.neighbors[p.PeerAddress]; n != nil && !slices.Contains(n.ended, p.Family) {
		n.ended = append(n.ended, p.Family)
		s.settle(n)
	}
	s.mu.Unlock()
	s.config.Changed()
}

// settle forgets what a neighbour had in its last session, if it has sent all of this one or
// has had the time to.
func (s *Session) settle(n *neighbor) {
	if n.sends == nil || n.since.IsZero() {
		return
	}
	whole := !slices.ContainsFunc(n.sends, func(f packet.Family) bool { return !slices.Contains(n.ended, f) })
	if whole || time.Since(n.since) > Patience {
		n.heard, n.since = true, time.Time{}
		s.table.Sweep(n.Addr)
	}
}

// Missing returns the neighbours that have not sent all routes yet that they had when their
// first session began, and of these those without a session.
func (s *Session) Missing() (list, silent []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.config.Neighbors {
		n := s.neighbors[c.Addr]
		s.settle(n)
		if !n.heard {
			list = append(list, n.Addr)
			if n.sends == nil {
				silent = append(silent, n.Addr)
			}
		}
	}
	return list, silent
}

// Status is what is known of the sessions.
type Status struct {
	Neighbors []NeighborStatus `json:"neighbors"`
	Refused   bgp.Refused      `json:"refused"` // routes that were not taken, by cause
}

// NeighborStatus is what is known of a neighbour's session.
type NeighborStatus struct {
	Neighbor    netip.Addr `json:"neighbor"`
	AS          uint32     `json:"as"`
	Established bool       `json:"established"`
	Sessions    uint64     `json:"sessions"` // that have been established so far
	Routes      int        `json:"routes"`
	Why         string     `json:"why,omitempty"` // why no session is wanted
}

// Status returns what is known of the sessions.
func (s *Session) Status() (all Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Refused = s.table.Refused()
	for _, c := range s.config.Neighbors {
		n := s.neighbors[c.Addr]
		all.Neighbors = append(all.Neighbors, NeighborStatus{n.Addr, n.AS, n.sends != nil, n.sessions, s.table.Routes(n.Addr), n.refused})
	}
	return all
}

// familiesOf returns what a neighbour sends, of the families that are heard.
func familiesOf(capabilities []packet.ParameterCapabilityInterface) (list []packet.Family) {
	for _, c := range capabilities {
		if m, ok := c.(*packet.CapMultiProtocol); ok && slices.Contains(families, m.CapValue) {
			list = append(list, m.CapValue)
		}
	}
	if len(list) == 0 {
		list = families[:1] // RFC 4760: IPv4 needs no word
	}
	return list
}
