package fluid

// filling shares what ports have left among open flows: all rates rise alike
// until a port is full, the flows through it stay at what they have, and so on
// (progressive filling).
type filling struct {
	flows []flowID
	rate  []float64 // parallel to flows: what was found
	held  []int32   // and by which port

	ports []int32 // of the flows
	state []share // by port
	epoch uint32
	next  heap // ports by the rate at which they will be full, or less
}

type share struct {
	epoch  uint32
	holds  bool    // some open flows
	rising int32   // open flows that nothing holds yet
	left   float64 // for them
	given  float64 // to other open flows
	most   float64 // to one
	level  float64 // what those that the port holds get
}

func newFilling(ports int) filling { return filling{state: make([]share, ports)} }

func (w *filling) begin() {
	w.flows, w.ports = w.flows[:0], w.ports[:0]
	w.epoch++
}

// visit notes that a port is on an open flow's way.
func (w *filling) visit(p int32) {
	if w.state[p].epoch != w.epoch {
		w.state[p].epoch = w.epoch
		w.ports = append(w.ports, p)
	}
}

// share fills, beginning with what the flows leave that are not open.
func (n *network) share() {
	w := &n.fill
	w.rate, w.held = w.rate[:0], w.held[:0]
	for _, p := range w.ports {
		q := &n.ports[p]
		w.state[p] = share{epoch: w.epoch, left: max(0, q.capacity-q.load)}
	}
	for _, id := range w.flows {
		w.rate, w.held = append(w.rate, 0), append(w.held, none)
		for _, p := range n.flows[id].route.list() {
			w.state[p].rising++
		}
	}
	w.next.clear()
	for _, p := range w.ports {
		if s := &w.state[p]; s.rising > 0 {
			w.next.push(item{key: s.left / float64(s.rising), id: p})
		}
	}
	for w.next.len() > 0 {
		e := w.next.pop()
		s := &w.state[e.id]
		if s.rising == 0 {
			continue
		}
		// What held other flows has left more for these.
		if level := max(0, s.left/float64(s.rising)); level > e.key {
			w.next.push(item{key: level, id: e.id})
			continue
		}
		n.stop(e.id, e.key)
	}
}

// stop has all open flows through a port that is full stay at a rate.
func (n *network) stop(p int32, level float64) {
	w := &n.fill
	w.state[p].holds, w.state[p].level = true, level
	for _, id := range n.ports[p].flows {
		f := &n.flows[id]
		if f.at == 0 || w.held[f.at-1] != none {
			continue
		}
		w.held[f.at-1], w.rate[f.at-1] = p, level
		for _, q := range f.route.list() {
			s := &w.state[q]
			s.rising--
			s.left -= level
			s.given += level
			s.most = max(s.most, level)
		}
	}
}
