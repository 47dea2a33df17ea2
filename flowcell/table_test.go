package flowcell

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// entry is a value that can be told from others.
type entry struct {
	id   uint64
	rank uint8
}

// colliding returns keys whose search in a table with the seed begins at the
// given slot of a table of 1024, and so of any smaller one at its remainder.
func colliding(seed uint64, home uint32, n int) []FiveTuple {
	t := NewTable[entry](TableConfig[entry]{Seed: seed})
	var keys []FiveTuple
	for i := 0; len(keys) < n; i++ {
		if key := numbered(i); t.hash(&key)%1024 == home {
			keys = append(keys, key)
		}
	}
	return keys
}

// check recomputes from scratch what the table keeps.
func check[V comparable](table *Table[V]) error {
	var zero V
	size := uint32(len(table.slots))
	if size&(size-1) != 0 || 2*table.n > int(size) || table.n > table.config.Capacity {
		return fmt.Errorf("%d entries in %d slots, capacity %d", table.n, size, table.config.Capacity)
	}
	passed := make([]uint32, size)
	n, latest := 0, table.latest == nil
	for i := range table.slots {
		s := &table.slots[i]
		if s.hash == 0 {
			if s.v != zero || s.key != (FiveTuple{}) || s.used != 0 {
				return fmt.Errorf("free slot %d is not empty: %+v", i, *s)
			}
			continue
		}
		n++
		latest = latest || s == table.latest
		if s.hash != table.hash(&s.key) {
			return fmt.Errorf("slot %d: hash %x of %v, want %x", i, s.hash, s.key, table.hash(&s.key))
		}
		for at := s.hash % size; at != uint32(i); at = (at + 1) % size {
			passed[at]++
		}
	}
	if n != table.n || !latest {
		return fmt.Errorf("%d entries, Len says %d; the latest is one of them: %v", n, table.n, latest)
	}
	for i, want := range passed {
		if got := table.slots[i].passed; got != want {
			return fmt.Errorf("slot %d: %d entries passed, want %d", i, got, want)
		}
	}
	return nil
}

// nextVictim says who must go if an entry had to: of the next 16 the lowest in
// rank, of these the idlest, of these the first.
func nextVictim(t *Table[entry]) FiveTuple {
	var best *slot[entry]
	for i, seen := t.hand, 0; seen < min(16, t.n); i++ {
		s := &t.slots[i%uint32(len(t.slots))]
		if s.hash == 0 {
			continue
		}
		seen++
		if best == nil || s.v.rank < best.v.rank || s.v.rank == best.v.rank && s.used < best.used {
			best = s
		}
	}
	return best.key
}

const tableSeed = 3

// scriptKeys are 256, of which every third begins its search where others do.
var scriptKeys = sync.OnceValue(func() []FiveTuple {
	keys := append(colliding(tableSeed, 1022, 32), colliding(tableSeed, 0, 64)...)
	for i := range 160 {
		keys = append(keys, numbered(-1-i))
	}
	return keys
})

// A script is bytes: the capacity, then an operation, a key and the time passed
// since. It drives a table and a Go map.
func runScript(t *testing.T, script []byte) (evicted uint64) {
	keys := scriptKeys()
	type known struct {
		v    entry
		used time.Duration
	}
	next := func() (b byte) {
		if len(script) > 0 {
			b, script = script[0], script[1:]
		}
		return b
	}
	oracle := map[FiveTuple]known{}
	now := time.Duration(0)
	capacity := max(int(next()), 1)
	var gone []FiveTuple // that Evict was told of since the last look
	table := NewTable[entry](TableConfig[entry]{
		Capacity: capacity,
		Seed:     tableSeed,
		Rank: func(v *entry, idle time.Duration) uint8 {
			for key, k := range oracle {
				if k.v.id == v.id && now-k.used != idle {
					t.Fatalf("%v is said to be idle for %v, want %v", key, idle, now-k.used)
				}
			}
			return v.rank
		},
		Evict: func(key *FiveTuple, v *entry) {
			if k, ok := oracle[*key]; !ok || k.v != *v {
				t.Fatalf("evicts %v %+v; known is %+v, %v", *key, *v, k, ok)
			}
			delete(oracle, *key)
			gone = append(gone, *key)
		},
	})
	id := uint64(0)
	for len(script) > 0 {
		op, key := next(), keys[next()]
		now += time.Duration(next() % 4)
		k, ok := oracle[key]
		table.Touch(&key) // changes nothing
		switch op % 8 {
		case 0, 1, 2, 3:
			var victim *FiveTuple
			if !ok && table.Len() == capacity {
				key := nextVictim(table)
				victim = &key
			}
			v, added := table.Use(&key, now)
			if added == ok || *v != k.v {
				t.Fatalf("Use(%v): %+v, %v; want %+v, %v", key, *v, added, k.v, !ok)
			}
			if (victim != nil) != (len(gone) == 1) || victim != nil && gone[0] != *victim {
				t.Fatalf("Use(%v) of %d evicts %v, want %v", key, capacity, gone, victim)
			}
			evicted += uint64(len(gone))
			gone = gone[:0]
			id++
			*v = entry{id, op >> 6}
			oracle[key] = known{*v, now}
		case 4, 5:
			latest := table.Latest(&key, now)
			v := table.Get(&key, now)
			if latest != nil && latest != v {
				t.Fatalf("Latest(%v): %v; want %v or nil", key, *latest, v)
			}
			if v != nil && table.Latest(&key, now) != v {
				t.Fatalf("Latest(%v) is not what Get has found", key)
			}
			if (v != nil) != ok || ok && *v != k.v {
				t.Fatalf("Get(%v): %v; want %+v, %v", key, v, k.v, ok)
			}
			if ok {
				oracle[key] = known{k.v, now}
			}
		case 6:
			table.Forget(&key)
			delete(oracle, key)
		case 7:
			pkts := make([]Packet, op>>1)
			for i := range pkts {
				pkts[i].Flow = key
				if op&8 == 0 || i%3 == 0 { // else bursts of a flow
					key = keys[next()]
				}
			}
			before := []Run[entry]{{Packets: 7}}
			runs := table.GetRuns(pkts, now, before)
			if runs[0] != before[0] {
				t.Fatalf("GetRuns changes a run that it was given to %+v", runs[0])
			}
			i := 0
			for _, r := range runs[1:] {
				key := pkts[i].Flow
				k, ok := oracle[key]
				if (r.Value != nil) != ok || ok && *r.Value != k.v {
					t.Fatalf("GetRuns: %v of %v; want %+v, %v", r.Value, key, k.v, ok)
				}
				if ok {
					oracle[key] = known{k.v, now}
				}
				end := i + r.Packets
				for ; i < end; i++ {
					if pkts[i].Flow != key {
						t.Fatalf("GetRuns: packet %d of %v is in a run of %v", i, pkts[i].Flow, key)
					}
				}
				if i < len(pkts) && (r.Packets == 0 || pkts[i].Flow == key) {
					t.Fatalf("GetRuns: a run of %v ends after %d packets, before packet %d of %v", key, r.Packets, i, pkts[i].Flow)
				}
			}
			if i != len(pkts) {
				t.Fatalf("GetRuns: runs of %d packets, want %d", i, len(pkts))
			}
		}
		if err := check(table); err != nil {
			t.Fatal(err)
		}
		if len(gone) > 0 || table.Len() != len(oracle) || table.Evicted() != evicted {
			t.Fatalf("%d entries, want %d; %d evicted, want %d; evicts without need: %v",
				table.Len(), len(oracle), table.Evicted(), evicted, gone)
		}
		for i := range table.slots {
			if s := &table.slots[i]; s.hash != 0 && s.used != oracle[s.key].used {
				t.Fatalf("%v was used at %v, want %v", s.key, s.used, oracle[s.key].used)
			}
		}
	}
	for key, k := range oracle {
		if v := table.Get(&key, now); v == nil || *v != k.v {
			t.Fatalf("%v is lost: %v, want %+v", key, v, k.v)
		}
	}
	return evicted
}

func TestTable_matchesMap(t *testing.T) {
	var evicted uint64
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 3000)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		script[0] = byte(4 << (seed % 7)) // the last is none, which is one
		evicted += runScript(t, script)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if evicted < 1000 {
		t.Errorf("%d evictions: the test tests little", evicted)
	}
}

func FuzzTable(f *testing.F) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 400)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) { runScript(t, script) })
}

func TestTable_capacityIsAtLeastOne(t *testing.T) {
	for _, capacity := range []int{-1, 0, 1} {
		table := NewTable[entry](TableConfig[entry]{Capacity: capacity})
		for i := range 5 {
			key := numbered(i)
			if v, added := table.Use(&key, 0); !added || *v != (entry{}) {
				t.Fatalf("flow %d: %+v, %v", i, *v, added)
			} else {
				v.id = 7
			}
		}
		if table.Len() != 1 || table.Evicted() != 4 {
			t.Errorf("capacity %d: %d entries, %d evicted", capacity, table.Len(), table.Evicted())
		}
	}
}

// A search must end even where every slot was passed by somebody, though half
// of them are free. Numbers are slots of 16.
func TestTable_searchEndsWhereEverySlotWasPassed(t *testing.T) {
	table := NewTable[entry](TableConfig[entry]{Capacity: 8, Seed: tableSeed})
	use := func(home uint32, n int) []FiveTuple {
		keys := colliding(tableSeed, home, n)
		for i := range keys {
			table.Use(&keys[i], 0)
		}
		return keys
	}
	forget := func(keys []FiveTuple) {
		for i := range keys {
			table.Forget(&keys[i])
		}
	}
	forget(use(0, 8)[:7]) // leaves one in 7, which passed 0 to 6
	forget(use(8, 7)[:6]) // one in 14, which passed 8 to 13
	use(14, 1)            // into 15
	use(15, 1)            // into 0
	use(7, 1)             // into 8
	for i, s := range table.slots {
		if s.passed == 0 {
			t.Fatalf("slot %d was passed by nobody: the test tests nothing", i)
		}
	}
	if err := check(table); err != nil {
		t.Fatal(err)
	}
	for home := range uint32(16) {
		absent := colliding(tableSeed, home, 9)[8]
		if table.Get(&absent, 0) != nil {
			t.Errorf("an entry of slot %d is found though it was never there", home)
		}
	}
}

func TestTable_evictsByRankThenIdleness(t *testing.T) {
	type flow struct {
		rank uint8
		used time.Duration
	}
	for _, c := range []struct {
		name  string
		flows []flow
		want  int
	}{
		{"the idlest", []flow{{0, 5}, {0, 3}, {0, 4}}, 1},
		{"the lowest rank", []flow{{2, 1}, {1, 9}, {2, 0}}, 1},
		{"the idlest of the lowest rank", []flow{{1, 1}, {0, 8}, {0, 7}, {0, 9}}, 2},
		{"the only one", []flow{{3, 3}}, 0},
	} {
		var gone []uint64
		table := NewTable[entry](TableConfig[entry]{
			Capacity: len(c.flows),
			Rank:     func(v *entry, _ time.Duration) uint8 { return v.rank },
			Evict:    func(_ *FiveTuple, v *entry) { gone = append(gone, v.id) },
		})
		for i, f := range c.flows {
			key := numbered(i)
			v, _ := table.Use(&key, f.used)
			*v = entry{uint64(i), f.rank}
		}
		key := numbered(99)
		table.Use(&key, 10)
		if fmt.Sprint(gone) != fmt.Sprint([]int{c.want}) || table.Evicted() != 1 {
			t.Errorf("%s: evicts %v, counts %d; want %d", c.name, gone, table.Evicted(), c.want)
		}
	}
}

// In a large table it looks at a few only, but at others every time: who is
// used now and then stays, who is not goes.
func TestTable_evictsTheIdle(t *testing.T) {
	const capacity = 1000
	table := NewTable[entry](TableConfig[entry]{Capacity: capacity, Seed: 1})
	now := time.Duration(0)
	for i := range 20 * capacity {
		now++
		key := numbered(i % 10) // these are busy
		table.Use(&key, now)
		key = numbered(1000 + i)
		table.Use(&key, now)
	}
	for i := range 10 {
		if key := numbered(i); table.Get(&key, now) == nil {
			t.Errorf("busy flow %d was evicted", i)
		}
	}
	if n := table.Len(); n != capacity || table.Evicted() != 10+20*capacity-capacity {
		t.Errorf("%d entries, %d evicted", n, table.Evicted())
	}
}

func TestTable_allocatesNothingOnceWarm(t *testing.T) {
	table := NewTable[entry](TableConfig[entry]{Capacity: 1000, Seed: 1})
	pkts, runs := make([]Packet, 100), make([]Run[entry], 0, 100)
	n := 0
	round := func() {
		for i := range pkts {
			n++
			key := numbered(n)
			table.Use(&key, time.Duration(n))
			pkts[i].Flow = key
		}
		runs = table.GetRuns(pkts, time.Duration(n), runs[:0])
		for i := range 10 {
			table.Get(&pkts[i].Flow, time.Duration(n))
			table.Forget(&pkts[i].Flow)
		}
	}
	for range 20 {
		round()
	}
	if a := testing.AllocsPerRun(100, round); a != 0 || table.Evicted() == 0 {
		t.Errorf("%v allocations in 100 flows, %d evictions", a, table.Evicted())
	}
}
