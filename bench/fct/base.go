package fct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"weft/bench/sim/workload"
	"weft/bench/testbed"
	"weft/topology"
)

const (
	byteFlows = 30 // of one byte, between hosts of each distance
	sizeFlows = 3  // of each larger size, where all paths are alike
	// mostSizeFlows bounds them where paths differ.
	mostSizeFlows = 50
	// longestAlone bounds the sizes that are measured: they take so long over the hosts' link.
	longestAlone = 500 * time.Millisecond
	// pauseAlone is between two of these flows, for the links to be idle again.
	pauseAlone = 5 * time.Millisecond
	// baseTries is how often the base is measured if flows fail.
	baseTries = 2
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

// distances has for each number of links between the first host and others the last one of them.
func distances(t *topology.Topology) map[int]topology.NodeID {
	hosts := make(map[int]topology.NodeID)
	for h := range topology.NodeID(t.NumHosts()) {
		if h > 0 {
			hosts[linksBetween(t, 0, h)] = h
		}
	}
	return hosts
}

// flowsOfSize is how many flows of a size are measured between two hosts, so that one of them takes
// a fastest path: ECMP chooses by a hash of ports. Where paths differ, all of the flows miss the
// fastest ones with a probability of less than 1/1000, unless less than one path in 7 is as fast.
func flowsOfSize(t *topology.Topology, src, dst topology.NodeID) int {
	set := t.PathsOrAll(src, dst)
	if set.Weights == nil {
		return sizeFlows
	}
	fastest, most := 0, slices.Max(set.Weights)
	for _, w := range set.Weights {
		if w == most {
			fastest++
		}
	}
	miss := 1 - float64(fastest)/float64(len(set.Weights))
	if miss == 0 {
		return sizeFlows
	}
	return min(max(sizeFlows, int(math.Ceil(math.Log(0.001)/math.Log(miss)))), mostSizeFlows)
}

// basePlan is the flows that the base is measured with: one after the other, from the first host
// to the last one of each distance, in all sizes to the farthest.
func basePlan(t *topology.Topology, mbit float64) plan {
	p := plan{apart: pauseAlone}
	add := func(dst topology.NodeID, bytes int64, n int) {
		for range n {
			p.add(workload.Flow{Dst: dst, Bytes: bytes}, len(p.flows)-1)
		}
	}
	hosts := distances(t)
	for _, links := range slices.Sorted(maps.Keys(hosts)) {
		add(hosts[links], 1, byteFlows)
	}
	last := topology.NodeID(t.NumHosts() - 1)
	for _, bytes := range aloneSizes(mbit)[1:] {
		add(last, bytes, flowsOfSize(t, 0, last))
	}
	return p
}

// leastTimes are the least times of the base's flows, by receiver and size.
type leastTimes map[topology.NodeID]map[int64]time.Duration

// add takes what became of flows.
func (l leastTimes) add(p plan, all []outcome) {
	for i, o := range all {
		f := p.flows[i]
		if l[f.Dst] == nil {
			l[f.Dst] = make(map[int64]time.Duration)
		}
		if least, ok := l[f.Dst][f.Bytes]; o.finished && (!ok || o.took < least) {
			l[f.Dst][f.Bytes] = o.took
		}
	}
}

// alone is the base of what was measured; nil if that does not have one byte to the farthest host.
func (l leastTimes) alone(t *topology.Topology, base string, mbit float64) *alone {
	last := topology.NodeID(t.NumHosts() - 1)
	var points []point
	for _, bytes := range slices.Sorted(maps.Keys(l[last])) {
		points = append(points, point{bytes, l[last][bytes]})
	}
	if len(points) == 0 || points[0].bytes != 1 {
		return nil
	}
	near := make(map[int]time.Duration)
	for links, h := range distances(t) {
		if took, ok := l[h][1]; ok && h != last {
			near[links] = took
		}
	}
	return newAlone(base, mbit, points, near)
}

// baseFabric is where the base is measured: no failure, and no rule of switches.
func (b *bench) baseFabric() Fabric { return Fabric{Whole: b.real != b.Topology} }

// baseHosts are the hosts that it is measured with: those of the kernel's TCP, or of the first row
// that runs where that does not.
func (b *bench) baseHosts(bed testbed.Testbed) testbed.Row {
	plain := plainHosts()
	if bed.Supports(plain) == nil {
		return plain
	}
	for _, row := range b.order(0) {
		if hosts := b.Rows[row].Hosts; bed.Supports(hosts) == nil {
			return hosts
		}
	}
	return plain
}

// measureAlone measures what all rows' slowdowns divide by. What fails is tried once more; then
// the base is of the flows that finished. The error is why there is none.
func (b *bench) measureAlone(ctx context.Context) error {
	fabric := b.baseFabric()
	bed, err := b.bed(ctx, fabric)
	if err != nil {
		return err
	}
	defer func() {
		if !slices.ContainsFunc(b.Rows, func(r Row) bool { return r.Fabric == fabric }) {
			delete(b.beds, fabric)
			b.closing = errors.Join(b.closing, bed.Close())
		}
	}()
	last := topology.NodeID(b.Topology.NumHosts() - 1)
	mbit := hostsMbit(b.Topology, 0, last, b.RateMbit)
	hosts, p, times := b.baseHosts(bed), basePlan(b.Topology, mbit), make(leastTimes)
	for range baseTries {
		err = b.playAlone(ctx, bed, hosts, p, times)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.alone = times.alone(b.Topology, baseName(hosts), mbit)
		if err == nil && b.alone != nil {
			break
		}
		if b.alone == nil {
			err = errors.Join(fmt.Errorf("no flow of one byte finished within %v", b.Drain), err)
		}
		b.note("in the idle fabric: %v", err)
	}
	if b.alone == nil {
		return err
	}
	if b.OnIdle != nil {
		// The way there and back, twice.
		b.OnIdle(Idle{Delay: b.alone.farByte() / time.Duration(4*linksBetween(b.Topology, 0, last)), lab: b.alone})
	}
	largest := b.alone.points[len(b.alone.points)-1]
	link := time.Duration(float64(largest.bytes) * byteTime(mbit))
	b.note("slowdowns divide by what a flow of the same size takes with %s: %v for a byte between hosts far apart, %v for %d bytes, which the hosts' link carries in %v",
		b.alone.base, b.alone.farByte().Round(10*time.Microsecond), largest.took.Round(10*time.Microsecond), largest.bytes, link.Round(10*time.Microsecond))
	return nil
}

// playAlone plays the base's flows once. The error is why some did not finish.
func (b *bench) playAlone(ctx context.Context, bed testbed.Testbed, hosts testbed.Row, p plan, times leastTimes) (err error) {
	s, err := bed.Start(ctx, hosts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	idle := newIdleness()
	all, broken, err := play(ctx, s, p, b.Drain+time.Duration(len(p.flows))*longestAlone, nil)
	times.add(p, all)
	if percent := idle.percent(); ctx.Err() == nil && percent >= 0 && percent < testbed.CPUBound {
		b.note("the processors were idle %.0f %% of the time while flows were alone, which took too long then: slowdowns are too low", percent)
	}
	return errors.Join(err, broken)
}
