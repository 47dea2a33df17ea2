package fct

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"weft/bench/testbed"
)

// alone is what flows take that are alone in a fabric, by their size: the base of all slowdowns
// of a table.
type alone struct {
	base   string  // what was measured (Result.SlowdownBase)
	mbit   float64 // the lesser rate of the links of the hosts that points are of
	points []point // in the order of bytes, the first of one byte, between hosts far apart
	// near is what one byte takes between hosts that are nearer, by the number of links between
	// them. Other numbers than these count as far apart.
	near map[int]time.Duration
}

// point is the least time of several flows of a size.
type point struct {
	bytes int64
	took  time.Duration
}

// newAlone takes what was measured, points in the order of bytes. No flow takes less than a
// smaller one, and none takes less than one between nearer hosts: where it did, the latter's times
// were a busy machine's.
func newAlone(base string, mbit float64, points []point, near map[int]time.Duration) *alone {
	for i := len(points) - 2; i >= 0; i-- {
		points[i].took = min(points[i].took, points[i+1].took)
	}
	most := points[0].took
	for _, links := range slices.Backward(slices.Sorted(maps.Keys(near))) {
		most = min(most, near[links])
		near[links] = most
	}
	return &alone{base, mbit, points, near}
}

// byteTime is what a byte of large flows takes over a link, with the headers of its packet.
func byteTime(mbit float64) float64 {
	return 8e3 / mbit * float64(mss+headers) / float64(mss-timestamps)
}

// took is how long a flow takes between hosts with so many links between them, the slower one's
// of a rate: what one byte takes, and what the others take beyond it. That is on a straight line
// between the sizes that were measured, and beyond the largest one at the rate of the hosts' link.
// With links of another rate it is in proportion.
func (a *alone) took(bytes int64, links int, mbit float64) time.Duration {
	first, last := a.points[0], a.points[len(a.points)-1]
	var beyond float64
	if bytes >= last.bytes {
		beyond = float64(last.took-first.took) + float64(bytes-last.bytes)*byteTime(a.mbit)
	} else {
		i := sort.Search(len(a.points), func(i int) bool { return a.points[i].bytes > bytes })
		low, high := a.points[i-1], a.points[i]
		part := float64(bytes-low.bytes) / float64(high.bytes-low.bytes)
		beyond = float64(low.took-first.took) + part*float64(high.took-low.took)
	}
	return a.byteTook(links) + time.Duration(math.Round(beyond*a.mbit/mbit))
}

// byteTook is how long a flow of one byte takes.
func (a *alone) byteTook(links int) time.Duration {
	if took, ok := a.near[links]; ok {
		return took
	}
	return a.farByte()
}

// farByte is how long a flow of one byte takes between hosts that are far apart.
func (a *alone) farByte() time.Duration { return a.points[0].took }

// baseName says what slowdowns divide by in a lab: the kernel's TCP, but where that does not run.
func baseName(hosts testbed.Row) string {
	if hosts == plainHosts() {
		return labBase
	}
	return fmt.Sprintf("%s, alone in the idle lab", hosts.Label)
}
