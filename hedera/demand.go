package hedera

// slack is what rates may differ by, relatively, and still be called equal.
const slack = 1e-9

// Estimator computes the rates that flows would get if only hosts' own links limited them
// (thesis §4.2.2, Fig. 4.4). It keeps its buffers from call to call.
type Estimator struct {
	bySrc, byDst index
	demand       []float64
	converged    []bool
	limited      []bool // by the receiver
	// Links are the rates of hosts' own links, as parts of HostRate; nil: all are 1.
	Links []float64
	// Visits counts how often the last Estimate has looked at a flow. It determines the
	// run time.
	Visits int
	// Passes counts how often it has gone through all hosts, first as senders and then as
	// receivers.
	Passes int
}

// Estimate returns the demand of each flow, as a part of a host's link; it is
// valid until the next call. Hosts have numbers below hosts.
func (e *Estimator) Estimate(flows []Pair, hosts int) []float64 {
	e.bySrc.build(len(flows), hosts, func(i int) int { return int(flows[i].Src) })
	e.byDst.build(len(flows), hosts, func(i int) int { return int(flows[i].Dst) })
	e.demand = cleared(e.demand, len(flows))
	e.converged = cleared(e.converged, len(flows))
	e.limited = cleared(e.limited, len(flows))
	e.Visits, e.Passes = 0, 0
	for changed := true; changed; {
		changed = false
		e.Passes++
		for h := range hosts {
			changed = e.source(e.bySrc.of(h), e.link(h)) || changed
		}
		for h := range hosts {
			changed = e.destination(e.byDst.of(h), e.link(h)) || changed
		}
	}
	return e.demand
}

// link returns what a host's own link takes.
func (e *Estimator) link(host int) float64 {
	if e.Links == nil {
		return 1
	}
	return e.Links[host]
}

// source shares a sender's link among its flows that have not converged
// (EST-SRC).
func (e *Estimator) source(flows []int32, link float64) (changed bool) {
	sent, rising := 0.0, 0
	for _, f := range flows {
		if e.converged[f] {
			sent += e.demand[f]
		} else {
			rising++
		}
	}
	e.Visits += len(flows)
	if rising == 0 {
		return false
	}
	e.Visits += len(flows)
	return e.set(flows, func(f int32) bool { return !e.converged[f] }, max(0, link-sent)/float64(rising))
}

// destination cuts a receiver's flows to what its link takes (EST-DST).
func (e *Estimator) destination(flows []int32, link float64) (changed bool) {
	total := 0.0
	for _, f := range flows {
		e.limited[f] = true
		total += e.demand[f]
	}
	e.Visits += len(flows)
	if total <= link*(1+slack) {
		return false
	}
	equal, less := link/float64(len(flows)), 0.0
	for again := true; again; {
		again = false
		limited := 0
		for _, f := range flows {
			switch {
			case !e.limited[f]:
			case e.demand[f] < equal*(1-slack):
				less += e.demand[f]
				e.limited[f] = false
				again = true
			default:
				limited++
			}
		}
		e.Visits += len(flows)
		equal = (link - less) / float64(limited)
	}
	for _, f := range flows {
		e.converged[f] = e.converged[f] || e.limited[f]
	}
	e.Visits += len(flows)
	return e.set(flows, func(f int32) bool { return e.limited[f] }, equal)
}

// set gives some of the flows a demand.
func (e *Estimator) set(flows []int32, some func(int32) bool, demand float64) (changed bool) {
	for _, f := range flows {
		if some(f) && e.demand[f] != demand {
			changed = changed || !near(e.demand[f], demand)
			e.demand[f] = demand
		}
	}
	return changed
}

func near(a, b float64) bool { return a-b <= slack && b-a <= slack }

// index lists flows by host.
type index struct {
	first []int32 // by host, and one more
	flows []int32
}

func (x *index) of(host int) []int32 { return x.flows[x.first[host]:x.first[host+1]] }

// build makes the lists, flows of a host in their order.
func (x *index) build(flows, hosts int, host func(i int) int) {
	x.first = cleared(x.first, hosts+2)
	x.flows = cleared(x.flows, flows)
	for i := range flows {
		x.first[host(i)+2]++
	}
	for h := 2; h < len(x.first); h++ {
		x.first[h] += x.first[h-1]
	}
	for i := range flows {
		next := &x.first[host(i)+1]
		x.flows[*next] = int32(i)
		*next++
	}
	x.first = x.first[:hosts+1]
}

// cleared returns a slice of n zeros, in list's memory if that suffices.
func cleared[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}
