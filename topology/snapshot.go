package topology

import (
	"hash/fnv"
	"math/bits"
)

// linkSet is a bit set of links with the number of its members. A Topology
// never changes the one that it has: those derived from it may share it.
type linkSet struct {
	words []uint64
	n     int
}

func (s *linkSet) has(l LinkID) bool {
	return s != nil && s.words[l/64]&(1<<(l%64)) != 0
}

// any reports whether one of the n links from first on is a member. It looks
// at 64 of them at a time.
func (s *linkSet) any(first LinkID, n int) bool {
	if s == nil || n <= 0 {
		return false
	}
	from, last := uint(first), uint(first)+uint(n)-1
	head, tail := ^uint64(0)<<(from%64), ^uint64(0)>>(63-last%64)
	if from/64 == last/64 {
		return s.words[from/64]&head&tail != 0
	}
	for _, w := range s.words[from/64+1 : last/64] {
		if w != 0 {
			return true
		}
	}
	return s.words[from/64]&head != 0 || s.words[last/64]&tail != 0
}

// copyDown returns a copy of t's set that may be changed.
func (t *Topology) copyDown() *linkSet {
	s := &linkSet{words: make([]uint64, (t.NumLinks()+63)/64)}
	if t.down != nil {
		copy(s.words, t.down.words)
		s.n = t.down.n
	}
	return s
}

// withDown returns a Topology of t's shape with another set of dead links.
func (t *Topology) withDown(s *linkSet) *Topology {
	u := *t
	u.down = s
	if s != nil && s.n == 0 {
		u.down = nil
	}
	return &u
}

// Live reports whether a link is up.
func (t *Topology) Live(l LinkID) bool { return !t.down.has(l) }

// Whole returns the baseline of t: the same fabric with no link down and no path avoided.
func (t *Topology) Whole() *Topology {
	if t.down == nil && t.avoided == nil {
		return t
	}
	u := t.withDown(nil)
	u.avoided = nil
	return u
}

// Without returns t with the given links down as well, or t itself if they already are.
// The paths and routes of the result avoid them. It costs one copy of a bit for each link
// of the fabric: 10 KB in a fat-tree of k=48.
func (t *Topology) Without(down ...LinkID) *Topology {
	var set *linkSet
	for _, l := range down {
		if set == nil && t.Live(l) {
			set = t.copyDown()
		}
		if set != nil && !set.has(l) {
			set.words[l/64] |= 1 << (l % 64)
			set.n++
		}
	}
	if set == nil {
		return t
	}
	return t.withDown(set)
}

// With returns t with the given links up again; t itself if none of them was
// down.
func (t *Topology) With(up ...LinkID) *Topology {
	var set *linkSet
	for _, l := range up {
		if set == nil && !t.Live(l) {
			set = t.copyDown()
		}
		if set != nil && set.has(l) {
			set.words[l/64] &^= 1 << (l % 64)
			set.n--
		}
	}
	if set == nil {
		return t
	}
	return t.withDown(set)
}

// WithoutNode returns t with every link of a node down.
func (t *Topology) WithoutNode(id NodeID) *Topology {
	var down []LinkID
	for _, p := range t.Ports(id) {
		down = append(down, p.Link)
	}
	return t.Without(down...)
}

// Down returns the links that are down, ascending.
func (t *Topology) Down() []LinkID {
	if t.down == nil {
		return nil
	}
	list := make([]LinkID, 0, t.down.n)
	for i, w := range t.down.words {
		list = appendBits(list, i, w)
	}
	return list
}

// Diff returns the links that are down in only one of t and u, ascending. Redirected
// compares the paths that they avoid. Diff returns false if their String differs: they
// are different fabrics, whose link numbers do not match.
func (t *Topology) Diff(u *Topology) ([]LinkID, bool) {
	if t.spec != u.spec {
		return nil, false
	}
	if t.down == u.down {
		return nil, true
	}
	var list []LinkID
	for i := range (t.NumLinks() + 63) / 64 {
		list = appendBits(list, i, t.down.word(i)^u.down.word(i))
	}
	return list, true
}

func (s *linkSet) word(i int) uint64 {
	if s == nil {
		return 0
	}
	return s.words[i]
}

// appendBits appends the links that word number i of a set stands for.
func appendBits(list []LinkID, i int, word uint64) []LinkID {
	for ; word != 0; word &= word - 1 {
		list = append(list, LinkID(64*i+bits.TrailingZeros64(word)))
	}
	return list
}

// Fingerprint is a 64-bit hash (FNV-1a) of String. Topologies of the same fabric (see
// Diff) have the same one, whichever links are down. It does not protect against forgery.
func (t *Topology) Fingerprint() uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.spec))
	return h.Sum64()
}
