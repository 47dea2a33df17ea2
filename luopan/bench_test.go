package luopan

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// many is a Table that knows n racks, each with fresh answers.
func many(tb testing.TB, n int) (*Table, []int) {
	tb.Helper()
	t, err := New(Config{Seed: 1, MaxDestinations: n, Budget: maxBudget, Expiry: time.Minute, Idle: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	paths := numbers(64)
	for dst := range uint32(n) {
		t.Choose(dst, dst, paths, 0)
	}
	now := time.Duration(0)
	for t.Next() <= now {
		t.Probes(now, func(p Probe) {
			t.Answer(Answer{Token: p.Token, Path: p.Path, Queue: uint8(p.Path), Meters: 1}, p.Host, now)
		})
		now = max(now, min(t.Next(), time.Second))
	}
	return t, paths
}

func numbers(n int) []int {
	paths := make([]int, n)
	for i := range paths {
		paths[i] = i
	}
	return paths
}

func BenchmarkChoose_oneRack(b *testing.B) {
	t, paths := many(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		t.Choose(0, 0, paths, time.Second)
	}
}

// A flowcell to each of 10,000 racks, in random order, with what it sends.
func BenchmarkChoose_10000Racks(b *testing.B) {
	const n = 10_000
	t, paths := many(b, n)
	order := rand.New(rand.NewPCG(1, 1)).Perm(n)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		dst := uint32(order[i%n])
		path, _ := t.Choose(dst, dst, paths, time.Second)
		t.Sent(dst, path, 1448)
		i++
	}
}

// A round of two probes, sent and answered, among 10,000 racks.
func BenchmarkRound_10000Racks(b *testing.B) {
	const n = 10_000
	t, err := New(Config{Seed: 1, Budget: maxBudget, Expiry: time.Millisecond, Idle: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	paths := numbers(64)
	for dst := range uint32(n) {
		t.Choose(dst, dst, paths, 0)
	}
	b.ReportAllocs()
	now := time.Duration(0)
	var asked []Probe
	for range b.N {
		now = max(now, t.Next())
		asked = asked[:0]
		t.Probes(now, func(p Probe) { asked = append(asked, p) })
		for _, p := range asked {
			t.Answer(Answer{Token: p.Token, Path: p.Path, Queue: uint8(p.Path), Meters: 1}, p.Host, now)
		}
	}
	b.ReportMetric(float64(t.Stats().Probes)/float64(b.N), "probes/op")
}

func heap0() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What is known of 10,000 racks takes what the package says, and choosing
// allocates nothing.
func TestTable_memory(t *testing.T) {
	const n = 10_000
	before := heap0()
	table, paths := many(t, n)
	each := (heap0() - before) / n
	t.Logf("%d bytes a rack", each)
	if each > 1600 { // slices and the map may have twice the room they need
		t.Errorf("%d bytes a rack", each)
	}
	dst := uint32(0)
	if a := testing.AllocsPerRun(1000, func() {
		path, _ := table.Choose(dst%n, 7, paths, time.Second)
		table.Sent(dst%n, path, 1448)
		dst += 17
	}); a != 0 {
		t.Errorf("%v allocations a choice", a)
	}
	now := time.Second
	if a := testing.AllocsPerRun(10, func() {
		now += time.Second
		table.Probes(now, func(Probe) {})
	}); a != 0 {
		t.Errorf("%v allocations to probe", a)
	}
	runtime.KeepAlive(table)
}
