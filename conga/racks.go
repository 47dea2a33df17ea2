package conga

import "time"

// racks is a bounded map from racks to values of type V, which lie inside it. For
// a new rack it forgets the idlest of a few. Pointers to values are good until
// the next use.
type racks[V any] struct {
	index   map[uint32]int32
	entries []rack[V]
	max     int
	hand    int // where the search for a victim goes on
	evicted uint64
}

type rack[V any] struct {
	id   uint32
	used time.Duration
	v    V
}

// victims is how many entries an eviction chooses from.
const victims = 16

func newRacks[V any](max int) racks[V] {
	return racks[V]{index: make(map[uint32]int32), max: max}
}

// get returns the value of a rack, nil if there is none.
func (r *racks[V]) get(id uint32) *V {
	if i, ok := r.index[id]; ok {
		return &r.entries[i].v
	}
	return nil
}

// use returns the value of a rack, V's zero value if it is new, and takes note
// that it was used.
func (r *racks[V]) use(id uint32, now time.Duration) *V {
	i, ok := r.index[id]
	if !ok {
		i = r.add(id)
	}
	e := &r.entries[i]
	e.used = now
	return &e.v
}

func (r *racks[V]) add(id uint32) (i int32) {
	if len(r.entries) < r.max {
		i = int32(len(r.entries))
		r.entries = append(r.entries, rack[V]{})
	} else {
		i = r.evict()
	}
	r.entries[i] = rack[V]{id: id}
	r.index[id] = i
	return i
}

func (r *racks[V]) evict() int32 {
	n := len(r.entries)
	victim := r.hand
	for range min(victims, n) {
		if r.entries[r.hand].used < r.entries[victim].used {
			victim = r.hand
		}
		r.hand = (r.hand + 1) % n
	}
	delete(r.index, r.entries[victim].id)
	r.evicted++
	return int32(victim)
}
