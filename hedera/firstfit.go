package hedera

// FirstFit reserves capacity for flows on the first path that has it, and knows all links
// of the fabric. It is Global First Fit (thesis §4.2.3), and with demands of 1 on links that
// are all alike the flow scheduler (thesis §3.1.7).
//
// The thesis requires that the reserved sum be less than the capacity. Here it may be
// equal: a flow that fills a link would otherwise never find a path.
type FirstFit struct {
	net  Network
	left []int64 // by port, in units
	uses []Use
}

// NewFirstFit returns a FirstFit with nothing reserved.
func NewFirstFit(n Network) *FirstFit { return &FirstFit{net: n, left: units(n)} }

// Place reserves demand, a share of a host's link, and returns the path. ok is false if
// no path has so much capacity.
func (g *FirstFit) Place(p Pair, demand float64) (path int, ok bool) {
	need := int64(demand * unit)
	for n := range g.net.Paths(p.Src, p.Dst) {
		g.uses = g.net.AppendRoute(g.uses[:0], p.Src, p.Dst, n)
		if g.fits(need) {
			g.take(need)
			return n, true
		}
	}
	return 0, false
}

// fits reports whether g.uses have room.
func (g *FirstFit) fits(need int64) bool {
	for _, u := range g.uses {
		if g.left[u.Port] < u.of(need) {
			return false
		}
	}
	return true
}

func (g *FirstFit) take(need int64) {
	for _, u := range g.uses {
		g.left[u.Port] -= u.of(need)
	}
}

// Reserve reserves demand on a path, whether it has so much capacity or not: for flows that
// have the path already.
func (g *FirstFit) Reserve(p Pair, path int, demand float64) {
	g.uses = g.net.AppendRoute(g.uses[:0], p.Src, p.Dst, path)
	g.take(int64(demand * unit))
}

// Release gives back what Place or Reserve has reserved.
func (g *FirstFit) Release(p Pair, path int, demand float64) {
	g.uses = g.net.AppendRoute(g.uses[:0], p.Src, p.Dst, path)
	g.take(-int64(demand * unit))
}
