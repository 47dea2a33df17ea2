package backlog

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

const manyRacks = 10_000

func known(tb testing.TB, paths int) (*Table, []int) {
	table := newTable(tb, Config{})
	var list []int
	for p := range paths {
		list = append(list, p)
		table.Sent(0, p, 1, 0)
	}
	for i := range uint32(manyRacks) {
		table.Choose(i, list, 0)
	}
	return table, list
}

// scattered goes through the racks as a million flows would: in no order.
func scattered(i int) uint32 { return uint32(i) * 2654435761 % manyRacks }

func packet(table *Table, paths []int, i int) {
	now := time.Duration(i) * 100
	p := table.Choose(scattered(i), paths, now)
	table.Sent(scattered(i), p, 1500, now)
}

func TestAllocations_none(t *testing.T) {
	table, paths := known(t, 64)
	i := 0
	if n := testing.AllocsPerRun(1000, func() { packet(table, paths, i); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPacket(b *testing.B) {
	for _, n := range []int{4, 16, 576} {
		b.Run(fmt.Sprintf("paths=%d", n), func(b *testing.B) {
			table, paths := known(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				packet(table, paths, i)
			}
		})
	}
}

func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		table, _ := known(b, 4)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/manyRacks, "B/rack")
		runtime.KeepAlive(table)
	}
}
