package spray

// Touch reads what Data, or with ack Ack, will need soon, so that many cache misses
// overlap. The sum has no meaning.
func (h *Hosts) Touch(f *Flow, ack bool) int {
	if ack {
		p := &h.pairs.list[f.ack]
		return int(p.valid) + p.ack.Touch()
	}
	p := &h.pairs.list[f.data]
	return int(p.valid) + p.data.Touch()
}
