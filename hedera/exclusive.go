package hedera

// Exclusive gives each link between switches to one elephant (thesis §3.1.7): the first
// path of which no link is taken.
type Exclusive struct {
	net   Network
	taken []bool // by port; dead ones are
	uses  []Use
}

// NewExclusive returns an Exclusive whose live links are all free.
func NewExclusive(n Network) *Exclusive {
	x := &Exclusive{net: n, taken: make([]bool, len(n.Capacity()))}
	for p, c := range n.Capacity() {
		x.taken[p] = c == 0
	}
	return x
}

// Place takes the links of a free path and returns it. ok is false if there is none.
func (x *Exclusive) Place(p Pair) (path int, ok bool) {
	for n := range x.net.Paths(p.Src, p.Dst) {
		if x.Reserve(p, n) {
			return n, true
		}
	}
	return 0, false
}

// Reserve takes the links of a path, and returns false if one is taken.
func (x *Exclusive) Reserve(p Pair, path int) bool {
	x.uses = x.net.AppendRoute(x.uses[:0], p.Src, p.Dst, path)
	for _, u := range x.uses {
		if x.taken[u.Port] {
			return false
		}
	}
	x.set(true)
	return true
}

func (x *Exclusive) set(taken bool) {
	for _, u := range x.uses {
		x.taken[u.Port] = taken
	}
}

// Release frees the links of a path that Place or Reserve has taken.
func (x *Exclusive) Release(p Pair, path int) {
	x.uses = x.net.AppendRoute(x.uses[:0], p.Src, p.Dst, path)
	x.set(false)
}
