package fluid

// contended are the rates of flows, by flowID, where a full port through which several flows
// pass gives them only a part of its capacity. Full is what is so with all of it.
func (n *network) contended(part float64) []float64 {
	capacity := make([]float64, len(n.ports))
	for p := range n.ports {
		q := &n.ports[p]
		if capacity[p] = q.capacity; q.bound > 0 && len(q.flows) > 1 {
			capacity[p] *= part
		}
	}
	less := newNetwork(capacity)
	ids := make([]flowID, len(n.flows))
	for id := range n.flows {
		if n.flows[id].used {
			ids[id] = less.add(n.flows[id].route)
		}
	}
	less.settle()
	rates := make([]float64, len(n.flows))
	for id := range n.flows {
		if n.flows[id].used {
			rates[id] = less.rate(ids[id])
		}
	}
	return rates
}

// settleContended is settle where ports are contended: any flow's rate may have changed.
func (s *simulation) settleContended() {
	s.net.settle()
	for id, rate := range s.net.contended(s.Contended) {
		if f := s.flows[id]; f.under && f.rate != rate {
			s.goOn(f, rate)
		}
	}
}
