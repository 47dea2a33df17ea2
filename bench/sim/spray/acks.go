package spray

import "time"

// ackUnit is the unit of a flow's pure acknowledgements. Luopan's flowcells are numbered by
// the data that their flow has sent (Luopan §3.2), of which acknowledgements have none: so
// all of a flow's are one flowcell, until its switch forgets it.
type ackUnit struct {
	via  int32 // its path; -1: none
	used time.Duration
}

// ackIdle is how long a switch remembers a flow of which nothing comes (Luopan §3.2).
const ackIdle = time.Millisecond

// Ack returns the path of a pure acknowledgement from the flow's receiver, which has a
// selector of its own for these (DRB §5); -1 as in Data.
func (h *Hosts) Ack(f *Flow, now time.Duration) (path int) {
	p := h.pair(f.ack)
	switch {
	case p.paths == nil:
		return -1
	case !h.policy.Sprays():
		path, _ = p.paths.ByHash(f.back)
		return path
	case h.config.AckUnits && h.policy.Unit.Cuts():
		return h.ackInUnit(f, p, now)
	}
	path, _ = p.of(f.back).ack.Next(f.back)
	return path
}

// ackInUnit is Ack where acknowledgements are a unit of the policy. Policies do not count
// how much they send: it is next to nothing.
func (h *Hosts) ackInUnit(f *Flow, p *pair, now time.Duration) int {
	u := &f.acks
	switch last := int(u.via); {
	case last >= 0 && now-u.used <= ackIdle && p.paths.Has(last):
	case h.aware == nil:
		path, _ := p.of(f.back).ack.Next(f.back)
		u.via = int32(path)
	default:
		if !p.paths.Has(last) {
			last = -1
		}
		order := p.paths.Components[p.paths.Component(f.back)].Order
		u.via = int32(h.aware.choose(f, p, order, last, now))
	}
	u.used = now
	return int(u.via)
}
