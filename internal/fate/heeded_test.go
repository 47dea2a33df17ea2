package fate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
)

// notes is a selector that writes down what it is told. It has a next path of its own.
type notes struct {
	path int
	told []string
}

func (n *notes) Next([]int, time.Duration) int { return n.path }
func (n *notes) Acked(path int, marked bool, now time.Duration) {
	n.told = append(n.told, fmt.Sprintf("acked %d %v %v", path, marked, now))
}
func (n *notes) Lost(path int, timeout bool, now time.Duration) {
	n.told = append(n.told, fmt.Sprintf("lost %d %v %v", path, timeout, now))
}

// one is a flow that a test drives.
type one struct {
	*testing.T
	notes
	segments *Segments
	flow     Flow
	heeded   Heeded
	counts   Counts
	now      time.Duration
}

const flowHash = 0x123456789abcdef

func newOne(t *testing.T, first uint32) *one {
	o := &one{T: t, segments: NewSegments(1 << 16)}
	o.heeded = NewHeeded(&o.notes, first, 0)
	return o
}

func (o *one) send(path int, seq, size uint32) {
	o.path = path
	got := o.heeded.Next([]int{path}, o.now)
	if got != path {
		o.Fatalf("the path is %d, wanted is %d", got, path)
	}
	if !o.segments.New(&o.flow, flowHash, seq, size, size, path) {
		o.segments.Again(&o.flow, flowHash, seq, size, size, path, true, &o.counts, o.heeded.Lost)
	}
}

func (o *one) ack(a Ack) { o.heeded.Acked(o.segments, flowHash, a, o.now) }

func (o *one) expect(what string, want ...string) {
	o.Helper()
	if !slices.Equal(o.told, want) {
		o.Errorf("%s: told is %q, wanted is %q", what, o.told, want)
	}
	o.told = nil
}

var starts = []uint32{0, 1 << 31, 0xffffe000} // the last wraps

func TestAcked_everySegmentOnce(t *testing.T) {
	for _, start := range starts {
		o := newOne(t, start)
		for i := range uint32(6) {
			o.send(int(10+i), start+i*1000, 1000)
		}
		o.now = 7
		o.ack(Ack{All: start})
		o.expect("nothing")
		o.ack(Ack{All: start + 2000})
		o.expect("two at once", "acked 10 false 7ns", "acked 11 false 7ns")
		o.ack(Ack{All: start + 2000})
		o.expect("a duplicate")
		o.ack(Ack{All: start + 1000})
		o.expect("one that was overtaken")
		o.ack(Ack{All: start + 2500})
		o.expect("half of a segment")
		o.ack(Ack{All: start + 3000, Marked: true})
		o.expect("the rest of it, marked", "acked 12 true 7ns")
		o.ack(Ack{All: start + 6001})
		o.expect("all, and a FIN", "acked 13 false 7ns", "acked 14 false 7ns", "acked 15 false 7ns")
	}
}

func TestAcked_blocksBehindAHole(t *testing.T) {
	for _, start := range starts {
		o := newOne(t, start)
		block := func(from, to uint32) { o.ack(Ack{All: start, From: start + from*1000, To: start + to*1000}) }
		for i := range uint32(10) {
			o.send(int(10+i), start+i*1000, 1000)
		}
		block(2, 3)
		o.expect("one", "acked 12 false 0s")
		block(2, 5)
		o.expect("it grows", "acked 13 false 0s", "acked 14 false 0s")
		block(2, 4)
		o.expect("an older one")
		block(7, 8)
		o.expect("another hole", "acked 17 false 0s")
		block(2, 8)
		o.expect("it is filled", "acked 15 false 0s", "acked 16 false 0s")
		block(1, 9)
		o.expect("on both sides", "acked 11 false 0s", "acked 18 false 0s")
		o.ack(Ack{All: start + 10_000})
		o.expect("the hole, and what no block said", "acked 10 false 0s", "acked 19 false 0s")
		o.ack(Ack{All: start + 10_000, From: start + 1000, To: start + 2000})
		o.expect("a duplicate is reported")
		o.ack(Ack{All: start + 10_000, From: start + 11_000, To: start + 12_000})
		o.expect("what was never sent")
		o.ack(Ack{All: start + 10_000, From: start + 12_000, To: start + 11_000})
		o.expect("a block that ends before it begins")
	}
}

// A block that is longer than what is looked at for one packet is followed at its end, also
// when a duplicate is reported in between.
func TestAcked_longBlocks(t *testing.T) {
	o := newOne(t, 0)
	o.segments = NewSegments(1 << 20) // no two have one slot
	for i := range uint32(400) {
		o.send(int(i), i*1000, 1000)
	}
	for to := uint32(2); to <= 300; to++ {
		o.ack(Ack{All: 1000, From: 2000, To: to * 1000})
		o.ack(Ack{All: 1000, From: 0, To: 1000})
	}
	if len(o.told) != 1+298 || o.told[298] != "acked 299 false 0s" {
		t.Errorf("told of %d segments, the last is %s", len(o.told), o.told[len(o.told)-1])
	}
}

// An acknowledgement of what was sent more than once is of one packet or the other.
func TestAcked_whatWasSentAgainTellsNothing(t *testing.T) {
	o := newOne(t, 0)
	for i := range uint32(4) {
		o.send(int(10+i), i*1000, 1000)
	}
	o.now = 100
	o.send(20, 1000, 1000)
	o.expect("sent again", "lost 11 false 100ns")
	o.send(21, 3000, 1000)
	o.expect("a tail loss probe")
	o.ack(Ack{All: 4000})
	o.expect("all", "acked 10 false 100ns", "acked 12 false 100ns")
}

func TestLost_afterAPauseItIsATimeout(t *testing.T) {
	o := newOne(t, 0)
	for i := range uint32(4) {
		o.send(int(10+i), i*1000, 1000)
	}
	o.now = flowcell.LeastTimeout
	o.send(20, 0, 1000)
	o.expect("as long", "lost 10 false 5ms")
	o.now += flowcell.LeastTimeout + 1
	o.send(21, 0, 1000)
	o.expect("longer: the path of the second time", "lost 20 true 10.000001ms")
	o.send(22, 1000, 1000)
	o.expect("the row behind it")
}

func TestNext_withoutPaths(t *testing.T) {
	o := newOne(t, 0)
	if path := o.heeded.Next(nil, 0); path >= 0 {
		t.Errorf("the path is %d, and none is live", path)
	}
}

// receiver is TCP's other end: it has bytes, and says which block is the latest.
type receiver struct {
	all  uint32 // segments
	have map[uint32]bool
}

func (r *receiver) take(i uint32) (from, to uint32) {
	if r.have[i] = true; i == r.all {
		for r.have[r.all] {
			r.all++
		}
		return 0, 0
	}
	for from = i; from > r.all && r.have[from-1]; from-- {
	}
	for to = i; r.have[to]; to++ {
	}
	return from, to
}

// Whatever is lost, overtaken and sent again on either way, a selector is told of each
// segment that was sent once, that it went by its path, once, and only when it has
// arrived; and of nothing else.
func TestAcked_likeAConnection(t *testing.T) {
	forgot := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		start := rng.Uint32()
		o := newOne(t, start)
		o.segments = NewSegments(1 << 20)
		r := receiver{have: map[uint32]bool{}}
		const size, count = 700, 400
		paths, times := make([]int, count), make([]int, count)
		arrived, credited := make([]bool, count), make([]int, count)
		var acks []Ack
		check := func() {
			if o.counts.Unknown > 0 { // two segments had one slot
				o.told = nil
			}
			for _, s := range o.told {
				var path int
				if n, _ := fmt.Sscanf(s, "acked %d", &path); n != 1 {
					continue
				}
				credited[path]++ // each segment has a path of its own
				if !arrived[path] || times[path] != 1 || credited[path] != 1 {
					t.Fatalf("seed %d: segment %d: %s; arrived %v, sent %d times", seed, path, s, arrived[path], times[path])
				}
			}
			o.told = nil
		}
		send := func(i uint32) {
			path := int(i)
			if times[i] > 0 {
				path = count
			}
			paths[i] = path
			times[i]++
			o.send(path, start+i*size, size)
			if rng.IntN(10) == 0 {
				return
			}
			arrived[i] = true
			from, to := r.take(i)
			acks = append(acks, Ack{All: start + r.all*size, From: start + from*size, To: start + to*size})
		}
		deliver := func() {
			if len(acks) == 0 {
				return
			}
			i := rng.IntN(min(len(acks), 4))
			if rng.IntN(10) > 0 {
				o.ack(acks[i])
				check()
			}
			acks = slices.Delete(acks, i, i+1)
		}
		for next := uint32(0); next < count; {
			switch {
			case next > r.all+60 || rng.IntN(30) == 0 && next > r.all:
				send(r.all) // again
			default:
				send(next)
				next++
			}
			deliver()
			check()
		}
		for r.all < count {
			send(r.all)
			deliver()
		}
		o.ack(Ack{All: start + count*size})
		check()
		if o.counts.Unknown > 0 {
			forgot++
			continue
		}
		for i := range count {
			if want := times[i] == 1; (credited[i] == 1) != want {
				t.Fatalf("seed %d: segment %d was sent %d times, told is %d times", seed, i, times[i], credited[i])
			}
		}
	}
	if forgot > 10 {
		t.Errorf("%d runs of 100 forgot segments", forgot)
	}
}

// What is forgotten is not made up: in a table that is much too small, no path is told but
// that of the segment.
func TestAcked_forgets(t *testing.T) {
	o := newOne(t, 0)
	o.segments = NewSegments(16)
	for i := range uint32(64) {
		o.send(int(i), i*1000, 1000)
	}
	for i := range uint32(64) {
		o.ack(Ack{All: (i + 1) * 1000})
		if len(o.told) > 1 || len(o.told) == 1 && o.told[0] != fmt.Sprintf("acked %d false 0s", i) {
			t.Fatalf("segment %d: %q", i, o.told)
		}
		o.told = nil
	}
}

// A peer that acknowledges whatever it likes costs no more than what was sent.
func TestAcked_anyNumbers(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := newOne(t, 0)
		sent := 0
		told := 0
		for i := range uint32(2000) {
			if rng.IntN(2) == 0 {
				o.send(3, i*100, 100)
				sent++
			}
			at := rng.Uint32N(1 << rng.IntN(32))
			o.ack(Ack{All: at, From: at + rng.Uint32N(3000), To: at + rng.Uint32N(9000)})
			told += len(o.told)
			o.told = nil
		}
		if told > sent {
			t.Fatalf("seed %d: told of %d segments, %d were sent", seed, told, sent)
		}
	}
}

func TestAcked_allocatesNothing(t *testing.T) {
	var quiet quiet
	s, f := NewSegments(1<<16), Flow{}
	h := NewHeeded(&quiet, 0, 0)
	seq := uint32(0)
	var c Counts
	live := []int{1}
	n := testing.AllocsPerRun(1000, func() {
		for range 16 {
			h.Next(live, 0)
			s.New(&f, flowHash, seq, 1000, 1000, 1)
			seq += 1000
		}
		s.Again(&f, flowHash, seq-8000, 1000, 1000, 2, true, &c, h.Lost)
		h.Acked(s, flowHash, Ack{All: seq - 8000, From: seq - 4000, To: seq}, 0)
	})
	if n > 0 || quiet.acked == 0 || quiet.lost == 0 {
		t.Errorf("%v allocations; %+v", n, quiet)
	}
}

type quiet struct{ acked, lost int }

func (q *quiet) Next([]int, time.Duration) int  { return 1 }
func (q *quiet) Acked(int, bool, time.Duration) { q.acked++ }
func (q *quiet) Lost(int, bool, time.Duration)  { q.lost++ }

func BenchmarkAcked(b *testing.B) {
	var q quiet
	s, f := NewSegments(1<<16), Flow{}
	h := NewHeeded(&q, 0, 0)
	seq := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		s.New(&f, flowHash, seq, 1448, 1448, 1)
		seq += 1448
		h.Acked(s, flowHash, Ack{All: seq}, 0)
	}
}
