package fluid

// Rates are those of a flow, in Mbit/s, as it comes to each port of its route,
// and behind the last one as it arrives.
type Rates [maxHops + 1]float64

// Arrives returns what of it arrives by a route.
func (c *Rates) Arrives(r *Route) float64 { return c[r.n] }

// OpenLoop returns the rates of flows that send at a constant rate whatever is lost, such
// as UDP. A full port passes the same share of every flow. It computes the ports of one
// height together. One pass is enough, since traffic to a port has passed lower ports on
// the way up, or higher ports on the way down.
func (f *Fabric) OpenLoop(routes []Route, rate float64) []Rates {
	rates := make([]Rates, len(routes))
	for i := range rates {
		rates[i][0] = rate
	}
	come := make([]float64, len(f.capacity))
	for height := range maxHops {
		f.at(routes, height, func(flow, hop int, p int32) { come[p] += rates[flow][hop] })
		f.at(routes, height, func(flow, hop int, p int32) {
			passes := 1.0
			if come[p] > f.capacity[p] {
				passes = f.capacity[p] / come[p]
			}
			rates[flow][hop+1] = rates[flow][hop] * passes
		})
	}
	return rates
}

// at calls do for every flow that passes a port of some height.
func (f *Fabric) at(routes []Route, height int, do func(flow, hop int, p int32)) {
	for i := range routes {
		for hop, p := range routes[i].list() {
			if f.height(p) == height {
				do(i, hop, p)
			}
		}
	}
}

// height counts a port's place on the longest way up and down again.
func (f *Fabric) height(p int32) int {
	layer := 0
	switch l := int(p / 2); {
	case l >= f.hosts+len(f.edges)*f.aggs:
		layer = 2
	case l >= f.hosts:
		layer = 1
	}
	if p%2 == 0 {
		return layer
	}
	return maxHops - 1 - layer
}
