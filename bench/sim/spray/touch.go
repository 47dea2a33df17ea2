package spray

// Touch reads what Data, or if ack Ack, will need, for who knows that it comes soon
// and would rather wait for many cache misses at once. The sum says nothing.
func (h *Hosts) Touch(f *Flow, ack bool) int {
	if ack {
		p := &h.pairs.list[f.ack]
		return int(p.valid) + p.ack.Touch()
	}
	p := &h.pairs.list[f.data]
	return int(p.valid) + p.data.Touch()
}
