package conga

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

const manyRacks = 10_000

func paths(n int) (list []int) {
	for p := range n {
		list = append(list, p)
	}
	return list
}

func known(tb testing.TB) *Table {
	table := newTable(tb, Config{})
	for i := range uint32(manyRacks) {
		table.Choose(i, four, asTag, -1, 0)
		table.Received(i, uint8(i), 1, 0)
	}
	return table
}

// scattered goes through the racks as a million flows would: in no order.
func scattered(i int) uint32 { return uint32(i) * 2654435761 % manyRacks }

// One packet's worth of each, and a flowlet.
func cycle(table *Table, paths []int, i int) {
	now := time.Duration(i) * 100
	dst, tag := scattered(i), uint8(i)
	p := table.Choose(dst, paths, asTag, -1, now)
	table.Sent(uint8(p), 1500, now)
	table.Feedback(dst, tag, tag&7, now)
	table.Received(dst, tag, tag&7, now)
	table.NextFeedback(dst, now)
}

func TestAllocations_none(t *testing.T) {
	table := known(t)
	list := paths(64)
	i := 0
	if n := testing.AllocsPerRun(1000, func() { cycle(table, list, i); i++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{4, 16, 64, 576} {
		b.Run(fmt.Sprintf("paths=%d", n), func(b *testing.B) {
			table, list := known(b), paths(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				table.Choose(scattered(i), list, asTag, -1, time.Duration(i)*100)
			}
		})
	}
}

func BenchmarkSent(b *testing.B) {
	table := known(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		table.Sent(uint8(i), 1500, time.Duration(i)*100)
	}
}

func BenchmarkFeedback(b *testing.B) {
	table := known(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		table.Feedback(scattered(i), uint8(i), 3, time.Duration(i)*100)
	}
}

func BenchmarkReceivedAndFedBack(b *testing.B) {
	table := known(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now := time.Duration(i) * 100
		table.Received(scattered(i), uint8(i), 3, now)
		table.NextFeedback(scattered(i), now)
	}
}

func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	for range b.N {
		runtime.GC()
		runtime.ReadMemStats(&before)
		table := known(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/manyRacks, "B/rack")
		runtime.KeepAlive(table)
	}
}
