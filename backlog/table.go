package backlog

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Table is what a host has sent of late, by path. A rack is any number of the
// caller's.
type Table struct {
	config  Config
	buckets buckets
	rooms   []room // a power of two; a rack's is that of its number's low bits
	evicted uint64
	rng     rand.PCG
}

// room is where the least loaded paths to a rack are remembered.
type room struct {
	dst   uint32
	n     int32 // 0: free
	paths [MaxMemory]int32
}

// New returns an idle Table. An error names the field that is wrong.
func New(c Config) (*Table, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Table{
		config:  c,
		buckets: newBuckets(c.RateBits / 8),
		rooms:   make([]room, 1),
		rng:     *rand.NewPCG(c.Seed, 0x6c6f63616c),
	}, nil
}

// Choose returns the path of a unit to a rack, one of paths, which are ascending and not
// kept; -1 if there is none. A path that occurs more than once is picked in proportion.
func (t *Table) Choose(dst uint32, paths []int, now time.Duration) (path int) {
	if len(paths) == 0 {
		return -1
	}
	t.buckets.share(paths[len(paths)-1], now)
	var least ranking
	var picked [MaxSamples]int
	for i := range min(t.config.Samples, len(paths)) {
		picked[i] = t.pick(len(paths), picked[:i])
		p := paths[picked[i]]
		least.add(p, t.buckets.left(p, now), t.config.Memory)
	}
	r := t.room(dst)
	for _, p := range r.paths[:r.n] {
		if _, live := slices.BinarySearch(paths, int(p)); live {
			least.add(int(p), t.buckets.left(int(p), now), t.config.Memory)
		}
	}
	r.n = int32(least.n)
	for i := range least.n {
		r.paths[i] = int32(least.paths[i])
	}
	return least.paths[0]
}

// pick returns a random number below n that is not among those picked before.
func (t *Table) pick(n int, before []int) int {
	for {
		if i := int(t.rng.Uint64() % uint64(n)); !slices.Contains(before, i) {
			return i
		}
	}
}

// Sent adds bytes that were sent to a rack by a path.
func (t *Table) Sent(_ uint32, path, bytes int, now time.Duration) {
	t.buckets.add(path, bytes, now)
}

func (t *Table) room(dst uint32) *room {
	for {
		r := &t.rooms[dst&uint32(len(t.rooms)-1)]
		switch {
		case r.n == 0 || r.dst == dst:
		case len(t.rooms) < t.config.MaxDestinations:
			t.grow()
			continue
		default:
			t.evicted++
			r.n = 0
		}
		r.dst = dst
		return r
	}
}

// grow doubles the rooms. No two racks meet thereby that had not met before.
func (t *Table) grow() {
	old := t.rooms
	t.rooms = make([]room, 2*len(old))
	for _, r := range old {
		if r.n > 0 {
			t.rooms[r.dst&uint32(len(t.rooms)-1)] = r
		}
	}
}

// ranking is the least loaded of the paths added, the least first; among equals, the one
// added first.
type ranking struct {
	n     int
	paths [MaxMemory]int
	left  [MaxMemory]float64
}

// add keeps room for max paths.
func (r *ranking) add(path int, left float64, max int) {
	if slices.Contains(r.paths[:r.n], path) {
		return
	}
	i := r.n
	for i > 0 && left < r.left[i-1] {
		i--
	}
	if i == max {
		return
	}
	r.n = min(r.n+1, max)
	copy(r.paths[i+1:r.n], r.paths[i:])
	copy(r.left[i+1:r.n], r.left[i:])
	r.paths[i], r.left[i] = path, left
}

// Evicted counts the racks that were forgotten for others.
func (t *Table) Evicted() uint64 { return t.evicted }
