package spray

// Touch reads what Data, or if ack Ack, will need, for who knows that it comes soon
// and would rather wait for many cache misses at once. The sum says nothing.
func (h *Hosts) Touch(f *Flow, ack bool) int {
	i := f.data
	if ack {
		i = f.ack
	}
	p := &h.pairs.list[i]
	return int(p.valid) + len(p.further)
}
