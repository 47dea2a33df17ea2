package reps

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// paper is Algorithms 1 and 2 of the paper, line by line, over paths that all stay live.
// Two things the paper leaves open: how many packets explore, and that a time without
// acknowledgements ends, too.
type paper struct {
	buffer           [8]struct{ cachedEV, isValid int }
	head             int
	numberOfValidEVs int
	written          int // 8: no place of the buffer is empty
	isFreezingMode   bool
	exitFreezingMode time.Duration
	exploreCounter   int
	random           func() int
}

func (r *paper) onACK(ev int, ecn bool) {
	if ecn {
		return
	}
	if r.buffer[r.head].isValid == 0 {
		r.numberOfValidEVs++
	}
	r.buffer[r.head].cachedEV, r.buffer[r.head].isValid = ev, 1
	r.head = (r.head + 1) % 8
	r.written = min(r.written+1, 8)
}

func (r *paper) exit(now time.Duration) {
	if r.isFreezingMode && now >= r.exitFreezingMode {
		r.isFreezingMode = false
		r.exploreCounter = 128
	}
}

func (r *paper) onFailureDetection(now time.Duration) {
	if r.exit(now); !r.isFreezingMode && r.exploreCounter == 0 {
		r.isFreezingMode = true
		r.exitFreezingMode = now + 100*time.Millisecond
	}
}

func (r *paper) onSend(now time.Duration) int {
	r.exit(now)
	if r.exploreCounter > 0 {
		r.exploreCounter--
		if r.exploreCounter%8 == 0 {
			return r.random()
		}
	}
	if r.written == 0 || r.numberOfValidEVs == 0 && !r.isFreezingMode {
		return r.random()
	}
	offset := 0
	if r.numberOfValidEVs > 0 {
		offset = (r.head - r.numberOfValidEVs + 8) % 8
		r.buffer[offset].isValid = 0
		r.numberOfValidEVs--
	} else {
		offset = r.head
		r.head = (r.head + 1) % 8
	}
	return r.buffer[offset].cachedEV
}

// Whatever is acknowledged, marked and lost: the paths are those of the paper's
// algorithms. The path that times out is one that is not in the ring, since here it is
// taken out of it.
func TestSelector_isThePapersAlgorithm(t *testing.T) {
	const paths, elsewhere = 64, 1000
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, live := New(seed), upTo(paths)
		draws := rand.NewPCG(seed, 0x72657073)
		p := paper{random: func() int { return int(draws.Uint64() % paths) }}
		for range Size { // the paper reads an empty place if it is frozen before
			path := rng.IntN(paths)
			s.Acked(path, false, 0)
			p.onACK(path, false)
		}
		now := time.Duration(0)
		for step := range 3000 {
			now += time.Duration(rng.IntN(1000)) * time.Microsecond
			switch rng.IntN(20) {
			case 0:
				s.Lost(elsewhere, true, now)
				p.onFailureDetection(now)
			case 1:
				s.Lost(rng.IntN(paths), false, now)
			case 2, 3, 4, 5, 6, 7, 8, 9:
				path, marked := rng.IntN(paths), rng.IntN(4) == 0
				s.Acked(path, marked, now)
				p.onACK(path, marked)
			default:
				if got, want := s.Next(live, now), p.onSend(now); got != want {
					t.Fatalf("seed %d, step %d: path %d, the paper's is %d", seed, step, got, want)
				}
			}
		}
	}
}

// REPS §3.1, by hand: what comes back without a mark goes out again, once, the oldest
// first; what comes back marked does not.
func TestSelector_recyclesTheOldestOnce(t *testing.T) {
	s := New(1)
	live := upTo(100)
	s.Acked(55, false, 0)
	s.Acked(11, false, 0)
	s.Acked(77, true, 0)
	s.Acked(33, false, 0)
	for i, want := range []int{55, 11, 33} {
		if got := s.Next(live, 0); got != want {
			t.Errorf("packet %d goes by %d, wanted is %d", i, got, want)
		}
	}
	drawn := map[int]bool{}
	for range 1000 {
		drawn[s.Next(live, 0)] = true
	}
	if len(drawn) < 95 {
		t.Errorf("with nothing to recycle, %d of 100 paths are drawn", len(drawn))
	}
	for path := range 11 { // more than there is room for
		s.Acked(path, false, 0)
	}
	for want := 3; want < 11; want++ {
		if got := s.Next(live, 0); got != want {
			t.Errorf("of eleven, %d comes where %d is the oldest left", got, want)
		}
	}
}

// A random path comes as often as it weighs.
func TestNext_drawsByWeight(t *testing.T) {
	s := New(4)
	live := []int{2, 5, 5, 5}
	count := map[int]int{}
	for range 40_000 {
		count[s.Next(live, 0)]++
	}
	if n := count[5]; n < 29_500 || n > 30_500 || count[2]+n != 40_000 {
		t.Errorf("%v", count)
	}
}

// A path that is dead is not taken while a selector is frozen: neither from the ring nor
// drawn. The others go on, whatever is marked.
func TestLost_aDeadPathIsNotTakenWhileFrozen(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s, live := New(seed), upTo(16)
		dead := rng.IntN(16)
		var underWay []int
		now := time.Duration(0)
		for range 40 { // before it dies
			underWay = append(underWay, s.Next(live, now))
			if len(underWay) > 4 {
				s.Acked(underWay[0], false, now)
				underWay = underWay[1:]
			}
		}
		for range Size { // it has carried a lot
			s.Acked([]int{dead, (dead + 1) % 16}[rng.IntN(2)], false, now)
		}
		s.Acked((dead+2)%16, false, now)
		s.Lost(dead, true, now)
		for range 5000 {
			now += time.Duration(rng.IntN(20)) * time.Microsecond
			path := s.Next(live, now)
			if path == dead {
				t.Fatalf("seed %d: after %v the dead path is taken", seed, now)
			}
			if rng.IntN(3) > 0 {
				s.Acked(path, rng.IntN(2) == 0, now)
			}
			if rng.IntN(10) == 0 {
				s.Lost(path, false, now)
			}
		}
		if now >= Freeze {
			t.Fatal("the test takes longer than a selector is frozen")
		}
	}
}

// After that it explores: for so many packets, and no oftener than it says, so that a dead
// path costs one packet of Size times the number of paths. Then all is as before.
func TestNext_exploresAfterItWasFrozen(t *testing.T) {
	s, live := New(9), upTo(1<<15)
	for path := range Size {
		s.Acked(path, false, 0)
	}
	s.Lost(1<<14, true, 0)
	for range 100 {
		if path := s.Next(live, Freeze-1); path >= Size {
			t.Fatalf("frozen, path %d is drawn", path)
		}
	}
	others := 0
	for i := range Explore {
		s.Acked(1, false, Freeze) // there is always something to recycle
		if path := s.Next(live, Freeze); path >= Size {
			if others++; (i+1)%Size != 0 {
				t.Errorf("packet %d takes path %d", i, path)
			}
		}
		if s.Lost(1<<14, true, Freeze); s.ice && i < Explore-1 {
			t.Fatalf("frozen again after %d packets", i)
		}
	}
	if others != Explore/Size {
		t.Errorf("%d of %d packets explore", others, Explore)
	}
	if s.Lost(1<<14, true, Freeze); !s.ice {
		t.Error("not frozen a second time")
	}
}

// Whatever happens, a path is one of those that are live.
func TestNext_isLive(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := New(seed)
		var live []int
		now := time.Duration(0)
		for step := range 2000 {
			if step%50 == 0 {
				live = live[:0]
				for path := range 30 {
					for range rng.IntN(3) {
						live = append(live, path)
					}
				}
				live = append(live, 30)
			}
			now += time.Duration(rng.IntN(3)) * time.Millisecond
			switch path := rng.IntN(40) - 2; rng.IntN(4) {
			case 0:
				s.Acked(path*rng.IntN(3000), rng.IntN(2) == 0, now)
			case 1:
				s.Lost(path, rng.IntN(2) == 0, now)
			default:
				if got := s.Next(live, now); !slices.Contains(live, got) {
					t.Fatalf("seed %d, step %d: path %d is not in %v", seed, step, got, live)
				}
			}
		}
	}
}

// Theorem 1 (REPS §5.1): recycled balls come to rest in their bins, none of which holds more
// than the threshold of marks, where random ones do not. n queues lose a packet in each step.
// b·n flows have one packet under way each, and send another when it has left.
func TestSelector_recycledBallsComeToRest(t *testing.T) {
	for _, n := range []int{16, 32} {
		for seed := range uint64(5) {
			threshold := int(math.Ceil(4 * math.Log(float64(n))))
			b := int(math.Ceil(2.4 * math.Log(float64(n))))
			if marks := marksOfBalls(n, b, threshold, seed, true); marks > 0 {
				t.Errorf("seed %d, %d queues: recycled balls still meet %d full bins", seed, n, marks)
			}
			if marks := marksOfBalls(n, b, threshold, seed, false); marks == 0 {
				t.Errorf("seed %d, %d queues: random balls come to rest, which tells nothing of recycled ones", seed, n)
			}
		}
	}
}

// marksOfBalls is how many packets leave a queue that is longer than the threshold, in the
// second half of a time that is long enough to come to rest.
func marksOfBalls(n, b, threshold int, seed uint64, recycle bool) (marks int) {
	bins, queues := upTo(n), make([][]*Selector, n)
	send := func(s *Selector) {
		bin := s.Next(bins, 0)
		queues[bin] = append(queues[bin], s)
	}
	for i := range b * n {
		send(New(seed<<16 | uint64(i)))
	}
	steps := 40 * n * b
	for step := range steps {
		var left []*Selector
		for bin, q := range queues {
			if len(q) == 0 {
				continue
			}
			full := len(q) > threshold
			if full && step >= steps/2 {
				marks++
			}
			q[0].Acked(bin, full || !recycle, 0)
			left = append(left, q[0])
			queues[bin] = q[1:]
		}
		for _, s := range left {
			send(s)
		}
	}
	return marks
}

func TestSelector_isSmallAndAllocatesNothing(t *testing.T) {
	if n := unsafe.Sizeof(Selector{}); n != 48 {
		t.Errorf("a selector takes %d bytes", n)
	}
	s, live := New(1), upTo(64)
	if n := testing.AllocsPerRun(1000, func() {
		s.Acked(s.Next(live, 0), false, 0)
		s.Lost(3, true, 0)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	s, live := New(1), upTo(64)
	b.ReportAllocs()
	for b.Loop() {
		s.Acked(s.Next(live, 0), false, 0)
	}
}
