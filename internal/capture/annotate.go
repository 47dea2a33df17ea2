package capture

import (
	"weft/conga"
	"weft/encap"
	"weft/flowcell"
	"weft/hedera/wire"
	"weft/topoupdate"
)

const (
	// maxFlows is how many flows an Annotator remembers packets of.
	maxFlows = 1024
	// maxSeen is how many packets of a flow it remembers.
	maxSeen = 256
)

// Annotator tells of packets, one after the other, in the order of their times. It remembers
// by which path packets went, so that it knows this, too, of those whose outer header has been
// taken off. It is not safe for concurrent use.
type Annotator struct {
	Decoder
	fabric    Fabric
	flows     map[flowcell.FiveTuple]*trail
	highest   map[place]uint32
	forgotten uint64
}

// place is where a flow is seen.
type place struct {
	flow flowcell.FiveTuple
	at   string
	out  bool
}

// trail is what was seen of a flow with its outer header, the latest maxSeen packets.
type trail struct {
	seen [maxSeen]sighting
	n    int
}

type sighting struct {
	seq, end uint32
	id       uint16
	path     int
	bounce   string
}

// NewAnnotator returns an Annotator. tunnels are the UDP ports of tunnels.
func NewAnnotator(f Fabric, tunnels ...uint16) *Annotator {
	return &Annotator{Decoder: Decoder{tunnels}, fabric: f, flows: make(map[flowcell.FiveTuple]*trail), highest: make(map[place]uint32)}
}

// Forgotten is how often the Annotator has forgotten all flows, for it knew too many.
func (a *Annotator) Forgotten() uint64 { return a.forgotten }

// Note tells of a packet. The Note refers to the Record's bytes.
func (a *Annotator) Note(r *Record) (n Note) {
	n.Path, n.Point, n.Hold, n.Cause = -1, r.Point, r.Hold, r.Cause
	var err error
	if n.Layers, err = a.Decode(r.Link, r.Bytes, r.Length); err != nil || !n.IP {
		return n
	}
	n.Kind = kindOf(&n.Layers)
	a.number(&n)
	a.path(&n, r)
	if n.Kind == KindData {
		a.follow(&n, r)
	}
	return n
}

// kindOf tells by ports what a packet is for. The payload is looked at where others may use
// the port.
func kindOf(l *Layers) Kind {
	p := &l.Packet
	switch {
	case p.IsTCP():
		if p.IsPureACK() {
			return KindACK
		}
		return KindData
	case p.Flow.Proto == flowcell.ProtoICMP || p.Flow.Proto == flowcell.ProtoICMPv6:
		return KindICMP
	case p.Flow.Proto != flowcell.ProtoUDP || p.Fragment:
		return KindOther
	}
	either := func(port uint16) bool { return p.Flow.SrcPort == port || p.Flow.DstPort == port }
	switch {
	case either(encap.ProbePort):
		return KindProbe
	case either(encap.SamplePort):
		return KindSample
	case either(topoupdate.Port):
		return KindUpdate
	case either(wire.Port):
		return KindScheduler
	case p.Flow.DstPort == encap.FeedbackPort:
		return KindFeedback
	}
	return KindOther
}

// number reads what a TCP packet has in place of an ID.
func (a *Annotator) number(n *Note) {
	p := &n.Packet
	switch {
	case n.Tunnel != nil && n.Tunnel.Flowcell != 0:
		n.Number, n.Numbered = n.Tunnel.Flowcell, n.Tunnel.Flowcell.Index() <= flowcell.MaxIndex
	case !p.IsTCP() || !n.DF:
	case p.Flow.Src.Is6():
		if p.ID != 0 && n.Kind == KindData && p.ID&(1<<6-1) == 0 {
			n.Number, n.Numbered = flowcell.Number(p.ID), true
		}
	case n.TOS>>2 == conga.MarkDSCP:
		m := conga.ParseMark(p.ID)
		n.Mark = &m
	case n.Kind == KindData:
		n.Number = flowcell.Number(p.ID)
		n.Numbered = n.Number.Index() <= flowcell.MaxIndex
	}
}

// path finds out which path the packet takes, or has taken.
func (a *Annotator) path(n *Note, r *Record) {
	via := n.Via
	switch {
	case r.HasPath:
		n.Path, n.Carrier = r.Path, "udp"
	case n.Tunnel != nil:
		n.Path = int(n.Tunnel.Path)
		return
	case via.IsValid():
		n.Bounce = via.String()
		if a.fabric == nil {
			return
		}
		if number, bounce, ok := a.fabric.Path(n.Packet.Flow.Src.IP(), n.Packet.Flow.Dst.IP(), via); ok {
			n.Path, n.Bounce = number, bounce
		}
	case n.Kind == KindData:
		a.recall(n)
	}
}

// follow remembers a data packet whose path is known, and finds out whether it was sent again.
func (a *Annotator) follow(n *Note, r *Record) {
	p := &n.Packet
	end := p.Seq + uint32(p.Payload)
	at := place{p.Flow, r.Interface, r.Out}
	if len(a.highest) >= 2*maxFlows {
		clear(a.highest)
		a.forgotten++
	}
	if top, known := a.highest[at]; !known || p.Flags&flowcell.FlagSYN != 0 || int32(end-top) > 0 {
		a.highest[at] = end
		n.Again = known && p.Payload > 0 && int32(p.Seq-top) < 0 && p.Flags&flowcell.FlagSYN == 0
	} else {
		n.Again = p.Payload > 0 && int32(p.Seq-top) < 0
	}
	if n.Learned || n.Path < 0 && n.Bounce == "" {
		return
	}
	t := a.flows[p.Flow]
	if t == nil {
		if len(a.flows) >= maxFlows {
			clear(a.flows)
			a.forgotten++
		}
		t = new(trail)
		a.flows[p.Flow] = t
	}
	s := sighting{p.Seq, end, p.ID, n.Path, n.Bounce}
	for i := 1; i <= min(t.n, 64); i++ { // seen at an interface before
		if t.seen[(t.n-i)%maxSeen] == s {
			return
		}
	}
	t.seen[t.n%maxSeen] = s
	t.n++
}

// recall finds the path of a packet that was seen before with its outer header: the same
// numbers, or else a super-segment that it was cut from.
func (a *Annotator) recall(n *Note) {
	p := &n.Packet
	t := a.flows[p.Flow]
	if t == nil {
		return
	}
	var found *sighting
	for i := 1; i <= min(t.n, maxSeen); i++ {
		s := &t.seen[(t.n-i)%maxSeen]
		if s.seq == p.Seq && s.id == p.ID {
			found = s
			break
		}
		if found == nil && p.Payload > 0 && int32(p.Seq-s.seq) >= 0 && int32(s.end-p.Seq) > 0 {
			found = s
		}
	}
	if found != nil {
		n.Path, n.Bounce, n.Learned = found.path, found.bounce, true
	}
}
