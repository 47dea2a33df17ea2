package conga

import (
	"math/rand/v2"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// writers is a Source: every data node writes block after block into HDFS, each with a copy
// on a node of the other rack and one on another node there (the default placement). Both
// copies travel at the same time, as the first passes on what it gets. A block begins when the
// one before is written, and no sooner than disks are ready for it.
type writers struct {
	racks [2][]topology.NodeID // data nodes
	block int64
	pace  time.Duration // between blocks, of the disks
	from  time.Duration // blocks that end later count
	until time.Duration // no block begins later

	rng    *rand.Rand
	first  []workload.Flow
	states []writer // by Flow.Job

	written [2]int // blocks, by rack
}

type writer struct {
	rack, node int // in racks
	copies     int // that are under way
	begun      time.Duration
}

func newWriters(racks [2][]topology.NodeID, block int64, pace, from, until time.Duration, seed uint64) *writers {
	w := &writers{racks: racks, block: block, pace: pace, from: from, until: until, rng: rand.New(rand.NewPCG(seed, 0x68646673))}
	for rack, nodes := range racks {
		for node := range nodes {
			w.states = append(w.states, writer{rack: rack, node: node})
		}
	}
	for i := range w.states { // not in step
		at := pace * time.Duration(i) / time.Duration(len(w.states))
		for _, f := range w.copies(i, at) {
			w.first = append(w.first, f)
		}
	}
	return w
}

// copies begins a block.
func (w *writers) copies(i int, at time.Duration) [2]workload.Flow {
	s := &w.states[i]
	s.begun, s.copies = at, 2
	there := w.racks[1-s.rack]
	second := w.rng.IntN(len(there))
	third := w.rng.IntN(len(there) - 1)
	if third >= second {
		third++
	}
	f := workload.Flow{Start: at, Src: w.racks[s.rack][s.node], Dst: there[second], Bytes: w.block, Job: uint32(i), Alone: true}
	g := f
	g.Src, g.Dst = f.Dst, there[third]
	return [2]workload.Flow{f, g}
}

func (w *writers) Next() (workload.Flow, bool) {
	if len(w.first) == 0 {
		return workload.Flow{}, false
	}
	f := w.first[0]
	w.first = w.first[1:]
	return f, true
}

func (w *writers) Done(f workload.Flow, at time.Duration, begin func(workload.Flow)) {
	s := &w.states[f.Job]
	if s.copies--; s.copies > 0 {
		return
	}
	if at >= w.from {
		w.written[s.rack]++
	}
	next := max(at, s.begun+w.pace)
	if next >= w.until {
		return
	}
	for _, f := range w.copies(int(f.Job), next) {
		begin(f)
	}
}

// job is how many seconds the writers of the slower rack take for their part of so many bytes,
// at the rate at which they wrote.
func (w *writers) job(bytes float64) float64 {
	longest := 0.0
	for rack, blocks := range w.written {
		part := bytes * float64(len(w.racks[rack])) / float64(len(w.states))
		rate := float64(blocks) * float64(w.block) / (w.until - w.from).Seconds()
		longest = max(longest, part/max(rate, 1))
	}
	return longest
}
