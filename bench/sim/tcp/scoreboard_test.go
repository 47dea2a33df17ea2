package tcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainBoard is RFC 6675's scoreboard word by word, slowly: a map of what is known
// of each segment.
type plainBoard struct {
	una, next int64
	segments  map[int64]*plainSegment
	thresh    int
}

type plainSegment struct{ sacked, lost, again bool }

func (b *plainBoard) send() {
	b.segments[b.next] = &plainSegment{}
	b.next++
}

func (b *plainBoard) acknowledge(to int64) {
	for ; b.una < to; b.una++ {
		delete(b.segments, b.una)
	}
}

func (b *plainBoard) sack(from, to int64) {
	for i := max(from, b.una); i < min(to, b.next); i++ {
		b.segments[i].sacked = true
	}
	above := 0 // IsLost
	for i := b.next - 1; i >= b.una; i-- {
		if s := b.segments[i]; s.sacked {
			above++
		} else if above >= b.thresh {
			s.lost = true
		}
	}
}

func (b *plainBoard) loseAll() {
	for _, s := range b.segments {
		s.lost, s.again = !s.sacked, false
	}
}

// pipe is SetPipe: what is neither sacked nor lost, and what was sent again.
func (b *plainBoard) pipe() (n int64) {
	for _, s := range b.segments {
		if s.sacked {
			continue
		}
		if !s.lost {
			n++
		}
		if s.again {
			n++
		}
	}
	return n
}

// resend is NextSeg's first rule.
func (b *plainBoard) resend() (int64, bool) {
	for i := b.una; i < b.next; i++ {
		if s := b.segments[i]; s.lost && !s.sacked && !s.again {
			s.again = true
			return i, true
		}
	}
	return 0, false
}

// compareBoards does what ops say to both, a byte for what and a byte for where.
func compareBoards(ops []byte, window int64, thresh int) error {
	var fast scoreboard
	fast.reset(window)
	slow := plainBoard{segments: map[int64]*plainSegment{}, thresh: thresh}
	for n := 0; n+1 < len(ops); n += 2 {
		where := int64(ops[n+1])
		switch ops[n] % 8 {
		case 0, 1, 2:
			for range where%32 + 1 {
				if fast.next-fast.una < window {
					fast.next++
					slow.send()
				}
			}
		case 3:
			to := min(fast.una+where%8+1, fast.next)
			// A receiver acknowledges to a hole.
			for s := slow.segments[to]; s != nil && s.sacked; s = slow.segments[to] {
				to++
			}
			if to > fast.una {
				fast.acknowledge(to)
				slow.acknowledge(to)
			}
		case 4, 5:
			from := fast.una + 1 + where%64*max(1, window/64)
			to := from + where/64*where/64 + 1
			fast.sack(from, to, thresh)
			slow.sack(from, to)
		case 6:
			i, ok := slow.resend()
			if ok != (fast.missing > 0) {
				return fmt.Errorf("op %d: %d missing, want some: %v", n, fast.missing, ok)
			}
			if ok {
				if got := fast.resend(); got != i {
					return fmt.Errorf("op %d: resends %d, want %d", n, got, i)
				}
			}
		case 7:
			if where < 16 {
				fast.loseAll()
				slow.loseAll()
			} else if fast.next > fast.una {
				fast.lose(fast.una + 1) // NewReno's partial acknowledgement
				s := slow.segments[slow.una]
				s.lost = true
			}
		}
		if fast.pipe() != slow.pipe() {
			return fmt.Errorf("op %d (%d): pipe %d, want %d", n, ops[n]%8, fast.pipe(), slow.pipe())
		}
		if !(fast.una <= fast.again && fast.again <= fast.lost && fast.lost <= fast.next) {
			return fmt.Errorf("op %d: marks out of order: %+v", n, fast)
		}
	}
	return nil
}

func TestScoreboard_isRFC6675s(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		ops := make([]byte, 600)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		window := []int64{1, 2, 10, 44, 179, 256, 300, 2873}[seed%8]
		if err := compareBoards(ops, window, 1+int(seed/8%5)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzScoreboard(f *testing.F) {
	f.Add([]byte{0, 31, 4, 9, 4, 200, 6, 0, 3, 3, 7, 1, 6, 0}, uint16(44), uint8(3))
	f.Fuzz(func(t *testing.T, ops []byte, window uint16, thresh uint8) {
		ops = ops[:min(len(ops), 2000)]
		if err := compareBoards(ops, int64(window)%3000+1, int(thresh)%8+1); err != nil {
			t.Error(err)
		}
	})
}

// TestScoreboard_example: of ten segments 0, 2 and 3 are lost.
func TestScoreboard_example(t *testing.T) {
	var b scoreboard
	b.reset(10)
	b.next = 10
	for _, c := range []struct{ sacked, pipe, missing int64 }{
		{1, 9, 0}, {4, 8, 0}, // two above each hole do not suffice
		{5, 6, 1}, // 0 has three above it
		{6, 3, 3}, // 2 and 3, too
		{6, 3, 3}, // said again: nothing new
		{9, 2, 3}, // 7 and 8 have but one above them
	} {
		b.sack(c.sacked, c.sacked+1, 3)
		if b.pipe() != c.pipe || b.missing != c.missing {
			t.Errorf("after %d: pipe %d, missing %d, want %d, %d", c.sacked, b.pipe(), b.missing, c.pipe, c.missing)
		}
	}
	var again []int64
	for b.missing > 0 {
		again = append(again, b.resend())
	}
	if want := []int64{0, 2, 3}; !slices.Equal(again, want) || b.pipe() != 5 {
		t.Errorf("sent again: %v, want %v; pipe %d, want 5", again, want, b.pipe())
	}
}
