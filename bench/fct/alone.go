package fct

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

// alone is what flows take that are alone in a fabric, by their size: the base of all slowdowns
// of a table. It is measured between two hosts.
type alone struct {
	mbit   float64 // the lesser rate of these hosts' links
	points []point // in the order of bytes, the first of one byte
}

// point is the least time of several flows of a size.
type point struct {
	bytes int64
	took  time.Duration
}

// newAlone takes what was measured, in the order of bytes. No flow takes less than a smaller one:
// where it did, the smaller one's times were a busy machine's.
func newAlone(mbit float64, points []point) *alone {
	for i := len(points) - 2; i >= 0; i-- {
		points[i].took = min(points[i].took, points[i+1].took)
	}
	return &alone{mbit, points}
}

// byteTime is what a byte of large flows takes over a link, with the headers of its packet.
func byteTime(mbit float64) float64 {
	return 8e3 / mbit * float64(mss+headers) / float64(mss-timestamps)
}

// took is how long a flow takes: on a straight line between the sizes that were measured, beyond
// the largest one at the rate of the hosts' link. With links of another rate, the time beyond
// that of one byte is in proportion.
func (a *alone) took(bytes int64, mbit float64) time.Duration {
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
	return first.took + time.Duration(math.Round(beyond*a.mbit/mbit))
}

// byteTook is how long a flow of one byte takes.
func (a *alone) byteTook() time.Duration { return a.points[0].took }

const (
	byteFlows = 30 // of one byte
	sizeFlows = 3  // of each larger size
	// longestAlone bounds the sizes that are measured: they take so long over the hosts' link.
	longestAlone = 500 * time.Millisecond
	// pauseAlone is between two of these flows, for the links to be idle again.
	pauseAlone = 5 * time.Millisecond
)

// aloneSizes are those that are measured: denser where a link's burst ends.
func aloneSizes(mbit float64) (sizes []int64) {
	for _, bytes := range []int64{1, 3_000, 4_500, 10_000, 30_000, 100_000, 300_000, 1e6, 3e6, 10e6, 30e6} {
		if bytes == 1 || time.Duration(float64(bytes)*byteTime(mbit)) <= longestAlone {
			sizes = append(sizes, bytes)
		}
	}
	return sizes
}

// measureAlone plays flows one after the other, between hosts that are far apart, with the
// kernel's TCP where that runs, on the fabric without a rule of switches where there is one.
func (b *bench) measureAlone(ctx context.Context) (err error) {
	row := -1
	for i, r := range b.Rows {
		if b.errs[i] == nil && (row < 0 || b.Rows[row].Fabric != Fabric{} && r.Fabric == Fabric{}) {
			row = i
		}
	}
	bed, err := b.bed(ctx, b.Rows[row].Fabric)
	if err != nil {
		return err
	}
	hosts := plainHosts()
	if bed.Supports(hosts) != nil {
		hosts = b.Rows[row].Hosts
	}
	s, err := bed.Start(ctx, hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	last := topology.NodeID(len(s.Hosts) - 1)
	mbit := hostsMbit(b.real, 0, last, b.RateMbit)
	idle := newIdleness()
	if b.alone, err = playAlone(ctx, s, mbit, last, b.Drain); err != nil {
		return fmt.Errorf("in the idle fabric: %w", err)
	}
	if percent := idle.percent(); percent >= 0 && percent < testbed.CPUBound {
		b.note("the processors were idle %.0f %% of the time while flows were alone, which took too long then: slowdowns are too low", percent)
	}
	if b.OnIdle != nil {
		// The way there and back, twice.
		b.OnIdle(Idle{Delay: b.alone.byteTook() / time.Duration(4*len(b.real.PathsOrAll(0, last).Path(0).Links)), lab: b.alone})
	}
	largest := b.alone.points[len(b.alone.points)-1]
	link := time.Duration(float64(largest.bytes) * byteTime(mbit))
	b.note("slowdowns divide by what a flow of the same size takes alone in the idle lab by %s: %v for a byte, %v for %d bytes, which the hosts' link carries in %v",
		hosts.Label, b.alone.byteTook().Round(10*time.Microsecond), largest.took.Round(10*time.Microsecond), largest.bytes, link.Round(10*time.Microsecond))
	return nil
}

// playAlone plays the flows from the first host to the last one.
func playAlone(ctx context.Context, s *testbed.Session, mbit float64, last topology.NodeID, drain time.Duration) (*alone, error) {
	var p plan
	sizes, start := aloneSizes(mbit), time.Duration(0)
	for _, bytes := range sizes {
		n := sizeFlows
		if bytes == 1 {
			n = byteFlows
		}
		for range n {
			p.add(workload.Flow{Start: start, Dst: last, Bytes: bytes}, len(p.flows)-1)
			start += time.Duration(float64(bytes)*byteTime(mbit)) + pauseAlone
		}
	}
	all, broken, err := play(ctx, s, p, drain+time.Duration(len(p.flows))*longestAlone, nil)
	if err := errors.Join(err, broken); err != nil {
		return nil, err
	}
	least := make(map[int64]time.Duration)
	for i, f := range all {
		if bytes := p.flows[i].Bytes; f.finished && (least[bytes] == 0 || f.took < least[bytes]) {
			least[bytes] = f.took
		}
	}
	if least[1] == 0 {
		return nil, fmt.Errorf("no flow of one byte finished within %v", drain)
	}
	var points []point
	for _, bytes := range sizes {
		if least[bytes] > 0 {
			points = append(points, point{bytes, least[bytes]})
		}
	}
	return newAlone(mbit, points), nil
}
