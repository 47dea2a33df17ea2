package dataplane

import (
	"time"

	"weft/conga"
	"weft/flowcell"
	"weft/topology"
)

// informed chooses by what receivers report (CONGA §3), host by host. A host's
// reports move only what is sent to that host, not what is sent to others of its
// rack.
type informed struct{ table *conga.Table }

func (i *informed) choose(p *pair, _ *flowcell.Packet, paths []int, last int, now time.Duration) int {
	g := p.group
	return i.table.Choose(p.number, paths, func(path int) uint8 { return g.Tags[path] }, last, now)
}

func (i *informed) sent(p *pair, path, bytes int, now time.Duration) {
	i.table.Sent(p.group.Tags[path], bytes, now)
}

// mark returns what a packet of data to a host says: the tag of its path, or, in
// every other packet, a report if there is one.
func (i *informed) mark(to *pair, tag uint8, now time.Duration) flowcell.Number {
	if to.reported = !to.reported; to.reported {
		if n, ok := i.report(to, now); ok {
			return n
		}
		to.reported = false
	}
	return flowcell.Number(conga.Mark{Tag: tag, Tick: i.table.Tick(now)}.Put())
}

// report returns what an acknowledgement says: a report, since a host that only
// receives sends no data that could carry it. (In CONGA §3.3 all packets have room
// for a mark and a report.) It is false if there is nothing to report.
func (i *informed) report(to *pair, now time.Duration) (n flowcell.Number, ok bool) {
	tag, metric, ok := i.table.NextFeedback(to.number, now)
	if !ok {
		return 0, false
	}
	return flowcell.Number(conga.Mark{Feedback: true, Tag: tag, Metric: metric, Tick: i.table.Tick(now)}.Put()), true
}

// receive takes in what a packet from a host says.
func (i *informed) receive(from *pair, m conga.Mark, now time.Duration) {
	if m.Feedback {
		i.table.Feedback(from.number, m.Tag, m.Metric, now)
	} else {
		i.table.Received(from.number, m.Tag, m.Metric, now)
	}
}

func (i *informed) know(now time.Duration, add func(topology.NodeID, uint32, Congestion)) {
	for _, d := range i.table.Destinations(now) {
		var c Congestion
		for _, u := range d.Tags {
			c.Tags = append(c.Tags, TagCongestion{
				Tag: u.Tag, Local: u.Local, Remote: u.Remote, Known: u.Age >= 0, Age: max(u.Age, 0), Choices: u.Chosen,
			})
		}
		add(0, d.Destination, c)
	}
}

// CongaStats returns the counters of the policy conga, zero under others.
func (e *Egress) CongaStats() (s conga.Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if l.informed != nil {
			s = l.informed.table.Stats()
		}
	}
	return s
}
