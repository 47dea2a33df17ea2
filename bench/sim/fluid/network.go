package fluid

// slack is what rates may differ by, relatively, and still be called equal.
const slack = 1e-9

// flowID names a flow of a network. It is reused once the flow is removed.
type flowID int32

// network keeps flows at max-min fair rates: a flow can get more only if another
// one, which has no more than it, gets less. Flows come, go and change their
// ways. settle then recomputes only the flows concerned.
type network struct {
	ports []port
	flows []flow
	free  []flowID

	// Since the last settle:
	fresh   []flowID // without a rate yet
	touched []int32  // ports of which flows have come or gone

	fill filling
}

type port struct {
	capacity float64
	load     float64 // of the flows that have a rate; while settling, of those that keep it
	flows    []flowID
	bound    int32 // how many of the flows are held by this port
}

type flow struct {
	route Route
	place [maxHops]int32 // in the flows of each of the route's ports
	held  int32          // the port that keeps the flow from getting more: full, and no flow through it gets more; none, if there is no rate yet
	used  bool
	fresh bool  // has come or changed its way since the last settle
	at    int32 // one more than its place among the flows that settle has opened; 0: it has not
	rate  float64
}

const none = -1

// newNetwork returns a network of ports without flows.
func newNetwork(capacity []float64) *network {
	n := &network{ports: make([]port, len(capacity)), fill: newFilling(len(capacity))}
	for i, c := range capacity {
		n.ports[i].capacity = c
	}
	return n
}

// add adds a flow. It has no rate before settle.
func (n *network) add(r Route) flowID {
	var id flowID
	if last := len(n.free) - 1; last >= 0 {
		id, n.free = n.free[last], n.free[:last]
	} else {
		id = flowID(len(n.flows))
		n.flows = append(n.flows, flow{})
	}
	n.flows[id] = flow{used: true}
	n.enter(id, r)
	return id
}

// remove removes a flow.
func (n *network) remove(id flowID) {
	n.leave(id)
	n.flows[id].used = false
	n.free = append(n.free, id)
}

// reroute gives a flow another way.
func (n *network) reroute(id flowID, r Route) {
	n.leave(id)
	n.enter(id, r)
}

// rate returns a flow's rate in Mbit/s, as of the last settle.
func (n *network) rate(id flowID) float64 { return n.flows[id].rate }

func (n *network) enter(id flowID, r Route) {
	f := &n.flows[id]
	f.route, f.held, f.rate, f.fresh = r, none, 0, true
	for i, p := range r.list() {
		f.place[i] = int32(len(n.ports[p].flows))
		n.ports[p].flows = append(n.ports[p].flows, id)
		n.touched = append(n.touched, p)
	}
	n.fresh = append(n.fresh, id)
}

func (n *network) leave(id flowID) {
	f := &n.flows[id]
	for i, p := range f.route.list() {
		q := &n.ports[p]
		q.load -= f.rate
		last := len(q.flows) - 1
		q.flows[f.place[i]] = q.flows[last]
		n.moved(q.flows[last], p, f.place[i])
		if q.flows = q.flows[:last]; last == 0 {
			q.load = 0 // what rounding has left
		}
		n.touched = append(n.touched, p)
	}
	n.release(f)
	f.rate = 0
}

// moved notes a flow's new place among those of a port.
func (n *network) moved(id flowID, p, place int32) {
	f := &n.flows[id]
	for i, q := range f.route.list() {
		if q == p {
			f.place[i] = place
		}
	}
}

// hold notes which port keeps a flow from getting more.
func (n *network) hold(f *flow, p int32) {
	f.held = p
	n.ports[p].bound++
}

func (n *network) release(f *flow) {
	if f.held != none {
		n.ports[f.held].bound--
		f.held = none
	}
}

// MaxMin returns the max-min fair rates of flows by their paths.
func (f *Fabric) MaxMin(pairs []Pair, paths []int) []float64 {
	n := newNetwork(f.capacity)
	rates := make([]float64, len(pairs))
	for i, p := range pairs {
		n.add(f.Route(p.Src, p.Dst, paths[i]))
	}
	n.settle()
	for i := range rates {
		rates[i] = n.rate(flowID(i))
	}
	return rates
}
