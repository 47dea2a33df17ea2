package flowcell

import "time"

// TableConfig bounds a Table and says what it forgets first.
type TableConfig[V any] struct {
	// Capacity is the most flows remembered at once, at least 1. An entry takes 56 bytes
	// and a V. A table has slots for two to four times the most entries that it has held.
	Capacity int
	// Seed of the hash. A secret one makes it hard to find flows that collide.
	Seed uint64
	// Rank orders entries for eviction, lower ones first. Among equals the entry that has
	// been idle longest goes. nil makes all equal.
	Rank func(v *V, idle time.Duration) uint8
	// Evict is called with an entry that is about to be evicted. It must not touch the
	// table. May be nil.
	Evict func(key *FiveTuple, v *V)
}

// Table maps five-tuples to values of type V. The values lie inside it, so that
// finding one costs a cache miss or two at any size. It is bounded: when full, it
// evicts the idlest of a few.
//
// Open addressing with linear probing. Each slot counts the entries whose search passed
// over it, so a search ends where no entry was pushed further, and forgetting leaves no
// tombstones and moves no entry. Growing moves all entries at once; a table does not
// shrink.
//
// Pointers to values are good until the next Use that adds an entry or Forget.
// A Table is not safe for concurrent use.
type Table[V any] struct {
	config  TableConfig[V]
	slots   []slot[V] // a power of two, at least twice n
	n       int
	latest  *slot[V] // of the last Get or Use, or nil; packets come in bursts
	hand    uint32   // where the search for a victim goes on
	evicted uint64
	touched uint32 // by GetRuns and Touch, so that nothing is optimised away
}

type slot[V any] struct {
	key    FiveTuple
	hash   uint32 // 0 in a free slot
	passed uint32 // entries whose search begins at or before this slot and ends behind it
	used   time.Duration
	v      V
}

const (
	minSlots = 16
	// victims is how many entries an eviction chooses from.
	victims = 16
)

// NewTable returns an empty table.
func NewTable[V any](c TableConfig[V]) *Table[V] {
	c.Capacity = min(max(c.Capacity, 1), 1<<29)
	return &Table[V]{config: c, slots: make([]slot[V], minSlots)}
}

// Len is the number of flows remembered.
func (t *Table[V]) Len() int { return t.n }

// Evicted counts flows forgotten for want of room.
func (t *Table[V]) Evicted() uint64 { return t.evicted }

// Get returns the value of key, nil if there is none, and records its use at now.
func (t *Table[V]) Get(key *FiveTuple, now time.Duration) *V {
	if s := t.latest; s != nil && s.key.equal(key) {
		s.used = now
		return &s.v
	}
	return t.find(key, t.hash(key), now)
}

// Latest is Get for the flow that the last Get or Use has found, and nil for all others. It
// is small enough to be inlined.
func (t *Table[V]) Latest(key *FiveTuple, now time.Duration) *V {
	if s := t.latest; s != nil && s.key.equal(key) {
		s.used = now
		return &s.v
	}
	return nil
}

// Use returns the value of key. If there is none, it adds V's zero value, evicts another
// entry if necessary, and returns true.
func (t *Table[V]) Use(key *FiveTuple, now time.Duration) (v *V, added bool) {
	if s := t.latest; s != nil && s.key.equal(key) {
		s.used = now
		return &s.v, false
	}
	hash := t.hash(key)
	if v = t.find(key, hash, now); v != nil {
		return v, false
	}
	return t.add(key, hash, now), true
}

func (t *Table[V]) find(key *FiveTuple, hash uint32, now time.Duration) *V {
	mask := uint32(len(t.slots) - 1)
	for i := hash; ; i++ {
		s := &t.slots[i&mask]
		if s.hash == hash && s.key.equal(key) {
			s.used = now
			t.latest = s
			return &s.v
		}
		if s.passed == 0 || i-hash == mask { // the latter where every slot was passed
			return nil
		}
	}
}

func (t *Table[V]) add(key *FiveTuple, hash uint32, now time.Duration) *V {
	if t.n >= t.config.Capacity {
		t.evict(now)
	}
	if 2*(t.n+1) > len(t.slots) {
		t.grow()
	}
	s := t.place(hash)
	s.key, s.hash, s.used = *key, hash, now
	t.n++
	t.latest = s
	return &s.v
}

// place finds a free slot for an entry and counts it where it passes.
func (t *Table[V]) place(hash uint32) *slot[V] {
	mask := uint32(len(t.slots) - 1)
	for i := hash; ; i++ {
		s := &t.slots[i&mask]
		if s.hash == 0 {
			return s
		}
		s.passed++
	}
}

// Forget removes key, if it is there.
func (t *Table[V]) Forget(key *FiveTuple) {
	if t.find(key, t.hash(key), 0) != nil {
		t.remove(t.latest)
	}
}

func (t *Table[V]) remove(s *slot[V]) {
	mask := uint32(len(t.slots) - 1)
	for i := s.hash; &t.slots[i&mask] != s; i++ {
		t.slots[i&mask].passed--
	}
	*s = slot[V]{passed: s.passed}
	t.n--
	t.latest = nil
}

// grow doubles the table.
func (t *Table[V]) grow() {
	old := t.slots
	t.slots = make([]slot[V], 2*len(old))
	t.latest = nil
	for i := range old {
		if s := &old[i]; s.hash != 0 {
			to := t.place(s.hash)
			passed := to.passed
			*to = *s
			to.passed = passed
		}
	}
}

// evict forgets one entry: of the next few in the table the lowest in rank, and
// of these the one idle longest.
func (t *Table[V]) evict(now time.Duration) {
	mask := uint32(len(t.slots) - 1)
	var victim *slot[V]
	var lowest uint8
	for seen := 0; seen < min(victims, t.n); t.hand++ {
		s := &t.slots[t.hand&mask]
		if s.hash == 0 {
			continue
		}
		seen++
		var rank uint8
		if t.config.Rank != nil {
			rank = t.config.Rank(&s.v, now-s.used)
		}
		if victim == nil || rank < lowest || rank == lowest && s.used < victim.used {
			victim, lowest = s, rank
		}
	}
	if t.config.Evict != nil {
		t.config.Evict(&victim.key, &victim.v)
	}
	t.remove(victim)
	t.evicted++
}

// Run is packets of one flow that follow one another.
type Run[V any] struct {
	Packets int
	Value   *V // nil if the flow is unknown
	hash    uint32
}

// GetRuns is Get for the flows of many packets. It divides them into runs, which it appends
// to runs and returns. It prefetches all entries before it looks at the first, so that cache
// misses overlap.
func (t *Table[V]) GetRuns(pkts []Packet, now time.Duration, runs []Run[V]) []Run[V] {
	old := len(runs)
	for i := 0; i < len(pkts); {
		first := i
		for i++; i < len(pkts) && pkts[i].Flow.equal(&pkts[first].Flow); i++ {
		}
		runs = append(runs, Run[V]{Packets: i - first})
	}
	found := runs[old:]
	if len(found) == 1 {
		found[0].Value = t.Get(&pkts[0].Flow, now)
		return runs
	}
	at := 0
	for i := range found {
		found[i].hash = t.hash(&pkts[at].Flow)
		at += found[i].Packets
	}
	// A loop of its own, so short that many of its loads are under way.
	mask := uint32(len(t.slots) - 1)
	var touched uint32
	for i := range found {
		touched ^= t.slots[found[i].hash&mask].hash // a load that nothing waits for
	}
	t.touched = touched
	at = 0
	for i := range found {
		r := &found[i]
		r.Value = t.find(&pkts[at].Flow, r.hash, now)
		at += r.Packets
	}
	return runs
}

// Touch prefetches the entry of key, so that the waits for several entries overlap.
func (t *Table[V]) Touch(key *FiveTuple) {
	t.touched ^= t.slots[t.hash(key)&uint32(len(t.slots)-1)].hash
}

// hash is never 0, which marks a free slot.
func (t *Table[V]) hash(key *FiveTuple) uint32 {
	return uint32(key.Hash(t.config.Seed)>>32) | 1<<31
}
