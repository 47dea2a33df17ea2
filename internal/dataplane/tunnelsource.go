package dataplane

import (
	"net/netip"

	"weft/encap"
	"weft/flowcell"
	"weft/resequencer/gro"
)

// tunnelSource reads a Tunnel's datagrams. In a train that came by one path,
// datagrams that continue each other are merged at once, in place.
type tunnelSource struct {
	*tunnel
	stats TunnelStats // written by next, under the lock of ingress

	bufs        [][]byte
	sizes, segs []int
	tos         []byte
	from        []netip.AddrPort
	n, at       int
	known       known   // of the latest datagram
	tried       []*peer // empty between uses
	spare       []byte  // the same

	// Of the datagrams of buffer at: where the next one begins, and the packet
	// that has been taken out of it but not given away.
	offset int
	ahead  Arrived
	train  gro.Train
}

// known is an inner address with the peer that has it: the datagrams of a train have one.
type known struct {
	roster *roster // a change makes another one
	addr   netip.Addr
	peer   *peer
}

// behind is roster.behind.
func (k *known) behind(r *roster, a netip.Addr) *peer {
	if k.roster != r || k.addr != a {
		*k = known{r, a, r.behind(a)}
	}
	return k.peer
}

// TunnelStats counts datagrams that a Tunnel has refused.
type TunnelStats struct {
	Datagrams   uint64 `json:"datagrams"`    // received
	Malformed   uint64 `json:"malformed"`    // no header of weft's, or not exactly one packet behind it
	UnknownPeer uint64 `json:"unknown_peer"` // from an address that belongs to no peer with the inner source
	Forged      uint64 `json:"forged"`       // a MAC that is wrong, missing or by an unknown key
	Replayed    uint64 `json:"replayed"`     // seen before, or too old to tell
	BadChecksum uint64 `json:"bad_checksum"` // neither the outer nor the inner checksum covers it, or one is wrong
}

func newTunnelSource(t *tunnel) *tunnelSource {
	return &tunnelSource{
		tunnel: t, sizes: make([]int, superBatch), segs: make([]int, superBatch),
		tos: make([]byte, superBatch), from: make([]netip.AddrPort, superBatch),
	}
}

func (s *tunnelSource) batch() (n, size int) { return superBatch, SuperBuffer }

func (s *tunnelSource) read(bufs [][]byte) (err error) {
	s.bufs, s.at, s.offset = bufs, 0, 0
	s.n, err = s.Underlay.Receive(bufs, s.sizes, s.segs, s.tos, s.from)
	return err
}

func (s *tunnelSource) filled() bool { return s.n == len(s.bufs) }
func (s *tunnelSource) waited() bool { return waits(s.Underlay) }

// next merges as many datagrams of a train as continue each other.
func (s *tunnelSource) next() (a Arrived, ok bool) {
	a, s.ahead = s.ahead, Arrived{}
	for s.at < s.n {
		b, ok := s.datagram()
		if !ok { // the buffer's end
			s.at, s.offset = s.at+1, 0
			if a.Bytes != nil {
				return s.complete(a), true
			}
			continue
		}
		c, ok := s.open(b)
		if !ok {
			continue
		}
		if a.Bytes != nil && c.verified == a.verified && s.train.Add(c.Bytes, 0) {
			a.Bytes = a.Bytes[:len(a.Bytes)+copy(a.Bytes[len(a.Bytes):cap(a.Bytes)], c.Bytes[s.train.HeaderLen():])]
			continue
		}
		whole := s.offset >= s.sizes[s.at]
		c.Slot, c.Alone = s.at, a.Bytes == nil && whole
		if a.Bytes == nil {
			s.train.Start(c.Bytes, 0)
			a = c
			a.Alone = true
			continue
		}
		a = s.complete(a)
		a.Alone = false
		s.train.Start(c.Bytes, 0)
		s.ahead = c
		s.ahead.Alone = false
		return a, true
	}
	return a, false
}

// complete finishes what has been merged.
func (s *tunnelSource) complete(a Arrived) Arrived {
	if s.train.Finish(a.Bytes) {
		a.MSS = s.train.MSS()
		a.verified = true
		a.vnet = superHeader(a.Bytes, &s.train)
	}
	return a
}

// datagram returns the next datagram of the buffer; false if there is none.
func (s *tunnelSource) datagram() ([]byte, bool) {
	from, end := s.offset, s.sizes[s.at]
	if from >= end {
		return nil, false
	}
	to := min(from+max(s.segs[s.at], 1), end)
	s.offset = to
	return s.bufs[s.at][from:to], true
}

// open takes a packet out of a datagram. It is false if the datagram is refused, and
// counted.
func (s *tunnelSource) open(b []byte) (a Arrived, ok bool) {
	s.stats.Datagrams++
	p, h, inner, err := s.unwrap(b, s.from[s.at].Addr().Unmap())
	if p == nil {
		s.stats.UnknownPeer++
		return a, false
	}
	a.Bytes = inner
	if err == nil && p.opener == nil && s.ZeroChecksum {
		err = encap.CheckZeroChecksum(h, a.Bytes)
	}
	if err == nil {
		err = encap.UDPDecapsulateTOS(a.Bytes, s.tos[s.at])
	}
	if err != nil {
		s.stats.refuse(err)
		return a, false
	}
	p.received++
	if h.Partial {
		var pkt flowcell.Packet
		if pkt.Parse(a.Bytes) != nil || !pkt.IsTCP() && (pkt.Flow.Proto != flowcell.ProtoUDP || pkt.Fragment) {
			s.stats.Malformed++
			return a, false
		}
		a.verified = true
		a.vnet = partialHeader(a.Bytes, pkt.Flow.Proto)
	}
	a.numbered, a.number, a.sequence = true, flowcell.Number(h.Flowcell), h.Number
	return a, true
}

// unwrap takes a packet out of a datagram, and returns the peer that has sent it. That is the
// peer at the outer address that has the inner source address. It is nil if there is none,
// and if a peer has sent what is not its own. Anybody may have made the bytes up.
func (s *tunnelSource) unwrap(b []byte, from netip.Addr) (p *peer, h encap.UDPHeader, inner []byte, err error) {
	if pair, ok := encap.UDPPair(b); ok {
		return s.unwrapHidden(b, pair, from)
	}
	src, ok := encap.UDPInnerSource(b)
	if !ok {
		return nil, h, nil, nil
	}
	if p = s.known.behind(s.tunnel.from, src); p == nil || p.from != from {
		return nil, h, nil, nil
	}
	if p.opener != nil {
		h, inner, err = p.opener.Open(b)
	} else {
		h, inner, err = encap.ParseUDP(b)
	}
	return p, h, inner, err
}

// unwrapHidden is unwrap for an encrypted inner packet. The peers that have the datagram's
// number are tried one after the other.
func (s *tunnelSource) unwrapHidden(b []byte, pair uint32, from netip.Addr) (p *peer, h encap.UDPHeader, inner []byte, err error) {
	s.tried = s.tunnel.from.pairs.find(s.tried[:0], pair, from)
	if len(s.tried) > 1 { // Open may spoil what it does not open
		s.spare = append(s.spare[:0], b...)
	}
	for i, q := range s.tried {
		if i > 0 {
			copy(b, s.spare)
		}
		p = q
		if h, inner, err = p.opener.Open(b); err == nil {
			break
		}
	}
	if err == nil && p != nil {
		if src, ok := encap.InnerSource(inner); !ok || s.known.behind(s.tunnel.from, src) != p {
			return nil, h, nil, nil
		}
	}
	return p, h, inner, err
}

func (s *TunnelStats) refuse(err error) {
	switch err {
	case encap.ErrUDPForged, encap.ErrUDPKey, encap.ErrUDPCipher, encap.ErrUDPPlain, encap.ErrUDPSealed:
		s.Forged++
	case encap.ErrUDPReplay:
		s.Replayed++
	case encap.ErrUDPPartial, encap.ErrUDPUnguarded, encap.ErrChecksum:
		s.BadChecksum++
	default:
		s.Malformed++
	}
}
