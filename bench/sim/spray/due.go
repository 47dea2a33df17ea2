package spray

import (
	"math"
	"time"
)

// Never means that nothing is due.
const Never = time.Duration(math.MaxInt64)

// dues is when each of so many is due: a tree of which every node has the lesser of
// its two children, so that the first is at the root.
type dues struct {
	tree   []time.Duration // from 1; the leaves are the second half
	leaves int
}

func newDues(n int) dues {
	d := dues{leaves: 1}
	for d.leaves < n {
		d.leaves *= 2
	}
	d.tree = make([]time.Duration, 2*d.leaves)
	for i := range d.tree {
		d.tree[i] = Never
	}
	return d
}

func (d *dues) of(i int) time.Duration { return d.tree[d.leaves+i] }

// next is when the first is due.
func (d *dues) next() time.Duration { return d.tree[1] }

// first is who is due first, the lowest of those due at once.
func (d *dues) first() int {
	i := 1
	for i < d.leaves {
		if i *= 2; d.tree[i] > d.tree[i+1] {
			i++
		}
	}
	return i - d.leaves
}

func (d *dues) set(i int, at time.Duration) {
	i += d.leaves
	d.tree[i] = at
	for i > 1 {
		i /= 2
		least := min(d.tree[2*i], d.tree[2*i+1])
		if d.tree[i] == least {
			return
		}
		d.tree[i] = least
	}
}
