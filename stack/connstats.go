package stack

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"weft/flowcell"
	"weft/third_party/netstack/tcp"
)

// ConnStats is a snapshot of what a TCP connection has done since it was opened.
type ConnStats struct {
	// Sent and Received are bytes of payload that Write has taken and Read has returned. Of what was
	// sent, some may not be acknowledged.
	Sent     uint64 `json:"sent_bytes"`
	Received uint64 `json:"received_bytes"`

	// Segments are those of TCP. A super-segment counts as often as it has segments.
	SegmentsSent     uint64 `json:"segments_sent"`
	SegmentsReceived uint64 `json:"segments_received"`
	Retransmits      uint64 `json:"retransmits"` // segments sent again
	Timeouts         uint64 `json:"timeouts"`    // retransmission timeouts

	// RTT is TCP's smoothed round trip, and RTTVar how much it varies (RFC 6298). They are 0 before
	// the first is measured, and after the connection has ended.
	RTT    time.Duration `json:"rtt_ns"`
	RTTVar time.Duration `json:"rttvar_ns"`

	// OutOfOrder are incoming segments that arrived out of order, and Held those that waited for
	// others. Both are as the resequencer saw them: TCP mostly gets them in order. It counts
	// anew if it had to forget the connection, for want of room or after a reset. A merged piece is one
	// segment.
	OutOfOrder uint64 `json:"out_of_order"`
	Held       uint64 `json:"held"`

	// Paths are what was sent by each bouncing switch, acknowledgements too, in the order of their
	// addresses; in a Tunnel by each path. There are 16 at most, those used first. Elsewhere is what
	// has gone without an outer header, by a path that the device has chosen (PathDevice), and by
	// further switches. Both are empty without Config.ConnPaths.
	Paths     []PathStats `json:"paths"`
	Elsewhere PathStats   `json:"elsewhere"`
}

// connCounts are of a connection.
type connCounts struct{ sent, received atomic.Uint64 }

// ConnStats returns what a TCP connection of the Host has done: one from DialContext or Accept, or
// what wraps one and has a method NetConn, as *tls.Conn does. It may be called at any time from any
// goroutine, also while others read and write. It takes the locks that packets need for a
// moment: call it now and then, not for each request.
//
// It fails with net.ErrClosed, in a *net.OpError, once the connection was closed, since what is
// known of it is then forgotten: ask before Close. Another error says that conn is none of this
// Host's TCP connections.
func (h *Host) ConnStats(conn net.Conn) (s ConnStats, err error) {
	c, ok := unwrapped(conn)
	if !ok || c.host != h {
		return s, fmt.Errorf("stack: ConnStats: %T is no TCP connection of this Host: pass what DialContext or Accept has returned", conn)
	}
	if c.isClosed() {
		return s, c.opError("stats", h.closeReason())
	}
	s.Sent, s.Received = c.counts.sent.Load(), c.counts.received.Load()
	if t, ok := c.ep.Stats().(*tcp.Stats); ok {
		s.SegmentsSent, s.SegmentsReceived = t.SegmentsSent.Value(), t.SegmentsReceived.Value()
		s.Retransmits, s.Timeouts = t.SendErrors.Retransmits.Value(), t.SendErrors.Timeouts.Value()
	}
	var info tcpip.TCPInfoOption
	if c.ep.GetSockOpt(&info) == nil {
		s.RTT, s.RTTVar = info.RTT, info.RTTVar
	}
	h.virtual.settle()
	out := c.flow()
	if o, known := h.ingress.FlowOrder(out.Reverse()); known {
		s.OutOfOrder, s.Held = o.OutOfOrder, o.Held
	}
	s.Paths, s.Elsewhere = h.egress.ConnectionPaths(out)
	return s, nil
}

// maxWrapped is how many wrappers of a connection are looked behind.
const maxWrapped = 8

func unwrapped(conn net.Conn) (c tcpConn, ok bool) {
	for range maxWrapped {
		if c, ok = conn.(tcpConn); ok {
			return c, true
		}
		w, wraps := conn.(interface{ NetConn() net.Conn })
		if !wraps {
			break
		}
		conn = w.NetConn()
	}
	return c, false
}

// flow is that of the packets that a connection sends.
func (s *socket) flow() flowcell.FiveTuple {
	address := func(a netip.AddrPort) flowcell.Address { return flowcell.AddressFrom(a.Addr()) }
	return flowcell.FiveTuple{Src: address(s.local), Dst: address(s.remote), SrcPort: s.local.Port(), DstPort: s.remote.Port(), Proto: flowcell.ProtoTCP}
}
