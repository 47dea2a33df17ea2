package stack

import (
	"net/netip"

	"weft/encap"
	"weft/flowcell"
	"weft/resequencer/gro"
)

// tunnelSource reads a Tunnel's datagrams. What continues each other in a train
// that came by one path is merged at once, in place.
type tunnelSource struct {
	*tunnel
	stats TunnelStats // written by next, under the lock of ingress

	bufs        [][]byte
	sizes, segs []int
	tos         []byte
	from        []netip.AddrPort
	n, at       int
	recent      *peer

	// Of the datagrams of buffer at: where the next one begins, and the packet
	// that has been taken out of it but not given away.
	offset int
	ahead  arrived
	train  gro.Train
}

// TunnelStats counts datagrams that a Tunnel has refused.
type TunnelStats struct {
	Datagrams   uint64 `json:"datagrams"`    // received
	Malformed   uint64 `json:"malformed"`    // no header of ours, or not one packet behind it
	UnknownPeer uint64 `json:"unknown_peer"` // from an address that no peer with the inner source has
	Forged      uint64 `json:"forged"`       // a MAC that is wrong, missing or by an unknown key
	Replayed    uint64 `json:"replayed"`     // seen before, or too old to tell
	BadChecksum uint64 `json:"bad_checksum"` // neither outer nor inner checksum guards it
}

func newTunnelSource(t *tunnel) *tunnelSource {
	return &tunnelSource{
		tunnel: t, sizes: make([]int, superBatch), segs: make([]int, superBatch),
		tos: make([]byte, superBatch), from: make([]netip.AddrPort, superBatch),
	}
}

func (s *tunnelSource) batch() (n, size int) { return superBatch, superBuffer }

func (s *tunnelSource) read(bufs [][]byte) (err error) {
	s.bufs, s.at, s.offset = bufs, 0, 0
	s.n, err = s.Underlay.Receive(bufs, s.sizes, s.segs, s.tos, s.from)
	return err
}

// next merges as many datagrams of a train as continue each other.
func (s *tunnelSource) next() (a arrived, ok bool) {
	a, s.ahead = s.ahead, arrived{}
	for s.at < s.n {
		b, ok := s.datagram()
		if !ok { // the buffer's end
			s.at, s.offset = s.at+1, 0
			if a.b != nil {
				return s.complete(a), true
			}
			continue
		}
		c, ok := s.open(b)
		if !ok {
			continue
		}
		if a.b != nil && c.verified == a.verified && s.train.Add(c.b, 0) {
			a.b = a.b[:len(a.b)+copy(a.b[len(a.b):cap(a.b)], c.b[s.train.HeaderLen():])]
			continue
		}
		whole := s.offset >= s.sizes[s.at]
		c.slot, c.alone = s.at, a.b == nil && whole
		if a.b == nil {
			s.train.Start(c.b, 0)
			a = c
			a.alone = true
			continue
		}
		a = s.complete(a)
		a.alone = false
		s.train.Start(c.b, 0)
		s.ahead = c
		s.ahead.alone = false
		return a, true
	}
	return a, false
}

// complete finishes what has been merged.
func (s *tunnelSource) complete(a arrived) arrived {
	if s.train.Finish(a.b) {
		a.mss = s.train.MSS()
		a.verified = true
		a.vnet = superHeader(a.b, &s.train)
	}
	return a
}

// datagram is the next of the buffer, false if there is none.
func (s *tunnelSource) datagram() ([]byte, bool) {
	from, end := s.offset, s.sizes[s.at]
	if from >= end {
		return nil, false
	}
	to := min(from+max(s.segs[s.at], 1), end)
	s.offset = to
	return s.bufs[s.at][from:to], true
}

// open takes a packet out of a datagram; false if it is refused, and counted.
func (s *tunnelSource) open(b []byte) (a arrived, ok bool) {
	s.stats.Datagrams++
	p := s.sender(b)
	if p == nil || p.from != s.from[s.at].Addr().Unmap() {
		s.stats.UnknownPeer++
		return a, false
	}
	var h encap.UDPHeader
	var err error
	if p.opener != nil {
		h, a.b, err = p.opener.Open(b)
	} else {
		h, a.b, err = encap.ParseUDP(b)
	}
	if err == nil && p.opener == nil && s.ZeroChecksum {
		err = encap.CheckZeroChecksum(h, a.b)
	}
	if err == nil {
		err = encap.UDPDecapsulateTOS(a.b, s.tos[s.at])
	}
	if err != nil {
		s.stats.refuse(err)
		return a, false
	}
	if h.Partial {
		var pkt flowcell.Packet
		if pkt.Parse(a.b) != nil || !pkt.IsTCP() && (pkt.Flow.Proto != flowcell.ProtoUDP || pkt.Fragment) {
			s.stats.Malformed++
			return a, false
		}
		a.verified = true
		a.vnet = partialHeader(a.b, pkt.Flow.Proto)
	}
	a.numbered, a.number, a.sequence = true, flowcell.Number(h.Flowcell), h.Number
	return a, true
}

// sender is the peer that has the inner source address, nil if none. The bytes
// are still anybody's.
func (s *tunnelSource) sender(b []byte) *peer {
	src, ok := encap.UDPInnerSource(b)
	if !ok {
		return nil
	}
	return s.behind(src)
}

func (s *TunnelStats) refuse(err error) {
	switch err {
	case encap.ErrUDPForged, encap.ErrUDPKey, encap.ErrUDPPlain, encap.ErrUDPSealed:
		s.Forged++
	case encap.ErrUDPReplay:
		s.Replayed++
	case encap.ErrUDPPartial, encap.ErrUDPUnguarded, encap.ErrChecksum:
		s.BadChecksum++
	default:
		s.Malformed++
	}
}
