package spray

import (
	"time"

	"weft/conga"
	"weft/topology"
)

// Mark is a packet's report of congestion (CONGA §3.1): the kind of its path, how busy
// that was so far, and how busy a path the other way was. In a simulation it needs no
// bits in a header.
type Mark struct {
	Forward  bool // Tag and CE are set
	Feedback bool // FbTag and FbMetric are set
	Tag, CE  uint8
	FbTag    uint8
	FbMetric uint8
}

// Marks reports whether packets between racks carry Marks: then the owner fills
// them by DataMark and AckMark, has Meters raise them at every port of a switch,
// and hands them to Received.
func (h *Hosts) Marks() bool { return h.marking != nil }

// DataMark returns the Mark of a data packet by a path. A packet of weft has room for one
// thing, so packets take turns: every other one reports.
func (h *Hosts) DataMark(f *Flow, path int, now time.Duration) Mark {
	p := h.pair(f.data)
	if p.paths == nil {
		return Mark{}
	}
	if p.reported = !p.reported; p.reported {
		if m := h.marking.report(p, now); m.Feedback {
			return m
		}
		p.reported = false
	}
	return Mark{Forward: true, Tag: p.paths.Tags[path]}
}

// AckMark returns the Mark of an acknowledgement.
func (h *Hosts) AckMark(f *Flow, now time.Duration) Mark {
	p := h.pair(f.ack)
	if p.paths == nil {
		return Mark{}
	}
	return h.marking.report(p, now)
}

func (s *informed) report(p *pair, now time.Duration) Mark {
	tag, metric, ok := s.tables[p.src].NextFeedback(s.rack(p.dst), now)
	return Mark{Feedback: ok, FbTag: tag, FbMetric: metric}
}

// Received takes the Mark that a flow's data packet has brought to its receiver or, with
// ack, that an acknowledgement has brought to its sender.
func (h *Hosts) Received(f *Flow, m Mark, ack bool, now time.Duration) {
	p := h.pair(f.data)
	from, at := p.src, p.dst
	if ack {
		from, at = at, from
	}
	s := h.marking
	if m.Forward {
		s.tables[at].Received(s.rack(from), m.Tag, m.CE, now)
	}
	if m.Feedback {
		s.tables[at].Feedback(s.rack(from), m.FbTag, m.FbMetric, now)
	}
}

// Meters are the rate estimators of all ports between switches (CONGA §3.2).
type Meters struct {
	first int32 // port between switches
	list  []conga.DRE
}

// defaultTau is CONGA's (§3.6).
const defaultTau = 160 * time.Microsecond

// NewMeters returns the estimators of idle ports. tau 0: 160 µs.
func NewMeters(t *topology.Topology, tau time.Duration) *Meters {
	if tau == 0 {
		tau = defaultTau
	}
	m := &Meters{first: upPort(topology.LinkID(t.NumHosts()))}
	for l := topology.LinkID(t.NumHosts()); int(l) < t.NumLinks(); l++ {
		d := conga.NewDRE(tau, rateBits(t, l))
		m.list = append(m.list, d, d)
	}
	return m
}

// Pass raises the Mark of a packet that a node sends by a port. Ports of hosts and to
// hosts have no meters.
func (m *Meters) Pass(port int32, bytes int, mark *Mark, now time.Duration) {
	if port < m.first {
		return
	}
	d := &m.list[port-m.first]
	d.Add(bytes, now)
	if mark.Forward {
		mark.CE = max(mark.CE, d.Metric(now))
	}
}
