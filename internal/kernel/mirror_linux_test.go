package kernel

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/internal/elephant"
)

// countingMap counts what is done to it. A write fails if failIn has come down to 0.
type countingMap struct {
	t              *testing.T
	have           map[int]int
	most           int
	failIn         int // -1: never
	puts           int
	removed, reads int
}

var errMap = errors.New("the map does not answer")

func (m *countingMap) fails() bool {
	if m.failIn < 0 {
		return false
	}
	m.failIn--
	return m.failIn < 0
}

func (m *countingMap) all() (map[int]int, error) {
	m.reads++
	if m.fails() {
		return nil, errMap
	}
	return maps.Clone(m.have), nil
}

func (m *countingMap) put(k, v int) error {
	m.puts++
	if m.fails() {
		return errMap
	}
	if m.have[k] = v; len(m.have) > m.most {
		m.t.Fatalf("%d entries, of which %d fit", len(m.have), m.most)
	}
	return nil
}

func (m *countingMap) remove(k int) error {
	m.removed++
	if m.fails() {
		return errMap
	}
	if _, ok := m.have[k]; !ok {
		m.t.Fatalf("entry %d is removed, and there is none", k)
	}
	delete(m.have, k)
	return nil
}

// differ is how many entries must be put and removed to come from one to the other.
func differ(from, to map[int]int) (put, remove int) {
	for k, v := range to {
		if was, ok := from[k]; !ok || was != v {
			put++
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			remove++
		}
	}
	return put, remove
}

// Whatever is wanted is in the map, for as many writes as entries change. The map is read at first and
// after an error, and never else.
func TestMirror_writesWhatChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	m := &countingMap{t: t, have: map[int]int{1: 1, 99: 9}, most: 60, failIn: -1}
	r := &Mirror[int, int]{m: m}
	want, mustRead, failures := map[int]int{}, true, 0
	for step := range 2000 {
		next := maps.Clone(want)
		if rng.IntN(50) == 0 {
			next = nil // all go
		}
		for range rng.IntN(8) {
			if k := rng.IntN(60); rng.IntN(2) == 0 || next == nil {
				delete(next, k)
			} else {
				next[k] = rng.IntN(3)
			}
		}
		if rng.IntN(20) == 0 {
			m.failIn = rng.IntN(5)
		}
		before := maps.Clone(m.have)
		m.puts, m.removed, m.reads = 0, 0, 0
		changed, err := r.Set(maps.Clone(next))
		want = next
		if read := m.reads == 1; m.reads > 1 || read != mustRead {
			t.Fatalf("step %d: the map is read %d times; after an error or at first: %v", step, m.reads, mustRead)
		}
		mustRead = err != nil
		if m.failIn = -1; err != nil {
			failures++
			continue
		}
		if put, remove := differ(before, want); m.puts != put || m.removed != remove || changed != put+remove {
			t.Fatalf("step %d: %d are put and %d removed, %d counted; want %d and %d", step, m.puts, m.removed, changed, put, remove)
		}
		if !maps.Equal(m.have, want) {
			t.Fatalf("step %d: the map has %v, want %v", step, m.have, want)
		}
	}
	if failures == 0 {
		t.Error("nothing has failed")
	}
}

// BenchmarkMirror is what it takes to change one of as many pins as there may be, and to renew all: by
// a Mirror, and by reading the map.
func BenchmarkMirror(b *testing.B) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 40, ValueSize: 16, MaxEntries: elephant.MaxPins, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		b.Skip(err)
	}
	defer m.Close()
	mirror := NewMirror[elephant.Key, PinValue](m)
	for _, by := range []struct {
		name string
		set  func(map[elephant.Key]PinValue) (int, error)
	}{{"mirror", mirror.Set}, {"sync", func(want map[elephant.Key]PinValue) (int, error) { return SyncMap(m, want) }}} {
		for _, change := range []int{1, elephant.MaxPins} {
			b.Run(fmt.Sprintf("%s/changed=%d", by.name, change), func(b *testing.B) {
				want := make(map[elephant.Key]PinValue)
				for n := range elephant.MaxPins {
					want[elephant.Key{SrcPort: [2]byte{byte(n >> 8), byte(n)}}] = PinValue{}
				}
				for i := 0; b.Loop(); i++ {
					want = maps.Clone(want)
					for n := range change {
						want[elephant.Key{SrcPort: [2]byte{byte(n >> 8), byte(n)}}] = PinValue{Until: uint64(i) + 1}
					}
					if _, err := by.set(want); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
