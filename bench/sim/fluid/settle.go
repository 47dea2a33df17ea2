package fluid

// settle gives all flows their rates. It returns the flows that are new or have another
// route or rate; the list is valid until the next call.
//
// A set of rates is max-min fair if and only if the rates are feasible and every flow is
// held by a port: one that is full and through which no flow gets more. So settle
// computes new rates only for an open set of flows, while all others keep theirs, and
// then checks whether all flows are still held. It opens the flows that are not, and
// repeats until all are held.
func (n *network) settle() []flowID {
	w := &n.fill
	w.begin()
	for _, id := range n.fresh {
		if n.flows[id].used {
			n.open(id)
		}
	}
	for _, p := range n.touched {
		n.openBound(p)
	}
	n.fresh, n.touched = n.fresh[:0], n.touched[:0]
	for len(w.flows) > 0 {
		known := len(w.flows)
		n.share()
		n.openUnheld()
		if len(w.flows) == known {
			break
		}
		if 2*len(w.flows) > len(n.flows)-len(n.free) {
			n.openAll()
		}
	}
	return n.close()
}

// open makes a flow one whose rate is sought.
func (n *network) open(id flowID) {
	f := &n.flows[id]
	if f.at > 0 {
		return
	}
	n.release(f)
	n.fill.flows = append(n.fill.flows, id)
	f.at = int32(len(n.fill.flows))
	for _, p := range f.route.list() {
		n.ports[p].load -= f.rate
		n.fill.visit(p)
	}
}

// openBound opens the flows that a port holds.
func (n *network) openBound(p int32) {
	if n.ports[p].bound == 0 {
		return
	}
	for _, id := range n.ports[p].flows {
		if n.flows[id].held == p {
			n.open(id)
		}
	}
}

func (n *network) openAll() {
	for id := range n.flows {
		if n.flows[id].used {
			n.open(flowID(id))
		}
	}
}

// openUnheld opens flows that share a port with open ones and are not held any
// more, or from which an open one could take.
func (n *network) openUnheld() {
	w := &n.fill
	for _, p := range w.ports[:len(w.ports):len(w.ports)] {
		q, s := &n.ports[p], &w.state[p]
		full := q.load+s.given >= q.capacity*(1-slack)
		if q.bound > 0 {
			for _, id := range q.flows {
				if f := &n.flows[id]; f.held == p && (!full || s.most > f.rate*(1+slack)) {
					n.open(id)
				}
			}
		}
		if s.holds {
			for _, id := range q.flows {
				if f := &n.flows[id]; f.at == 0 && f.rate > s.level*(1+slack) {
					n.open(id)
				}
			}
		}
	}
}

// close makes what has been sought the flows' rates, and returns those that
// have another one than before.
func (n *network) close() []flowID {
	w := &n.fill
	changed := w.flows[:0]
	for i, id := range w.flows {
		f := &n.flows[id]
		for _, p := range f.route.list() {
			n.ports[p].load += w.rate[i]
		}
		n.hold(f, w.held[i])
		f.at = 0
		if f.fresh || f.rate != w.rate[i] {
			f.rate, f.fresh = w.rate[i], false
			changed = append(changed, id)
		}
	}
	return changed
}
