package fluid

// unit is a host's link in whole numbers: sums of these are exact, in whatever
// order things are added and taken away.
const unit = 1 << 32

// units returns the ports' capacities in hosts' links.
func (f *Fabric) units() []int64 {
	list := make([]int64, len(f.capacity))
	for i, c := range f.capacity {
		list[i] = int64(c / f.capacity[0] * unit)
	}
	return list
}

// FirstFit reserves capacity for flows on the first path that has it, and knows all links
// of the fabric. It is Global First Fit (thesis §4.2.3), and with demands of 1 the flow
// scheduler (thesis §3.1.7).
//
// The thesis requires that the reserved sum be less than the capacity. Here it may be
// equal: a flow that fills a link would otherwise never find a path.
type FirstFit struct {
	fabric *Fabric
	left   []int64 // by port, in units
}

// NewFirstFit returns a FirstFit with nothing reserved.
func NewFirstFit(f *Fabric) *FirstFit { return &FirstFit{fabric: f, left: f.units()} }

// Place reserves demand, a share of a host's link, and returns the path. ok is false if
// no path has so much capacity.
func (g *FirstFit) Place(p Pair, demand float64) (path int, ok bool) {
	need := int64(demand * unit)
	for n := range g.fabric.Paths(p.Src, p.Dst) {
		if r := g.fabric.Route(p.Src, p.Dst, n); g.fits(&r, need) {
			g.take(&r, need)
			return n, true
		}
	}
	return 0, false
}

// fits looks at links between switches only: there is no choice of hosts' own.
func (g *FirstFit) fits(r *Route, need int64) bool {
	for _, p := range between(r) {
		if g.left[p] < need {
			return false
		}
	}
	return true
}

func (g *FirstFit) take(r *Route, need int64) {
	for _, p := range between(r) {
		g.left[p] -= need
	}
}

// Release gives back what Place has reserved.
func (g *FirstFit) Release(p Pair, path int, demand float64) {
	r := g.fabric.Route(p.Src, p.Dst, path)
	g.take(&r, -int64(demand*unit))
}

// between returns a route's ports without those of the hosts' links.
func between(r *Route) []int32 { return r.ports[1 : r.n-1] }
