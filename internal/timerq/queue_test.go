package timerq

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sorted is a queue that sorts a list whenever it is asked.
type sorted []item

type item struct {
	due  time.Duration
	what int32
}

// set has a thing come after all else that is due at the same time.
func (s *sorted) set(what int32, due time.Duration) {
	s.remove(what)
	*s = append(*s, item{due, what})
	slices.SortStableFunc(*s, func(a, b item) int { return int(a.due - b.due) })
}

func (s *sorted) remove(what int32) {
	*s = slices.DeleteFunc(*s, func(i item) bool { return i.what == what })
}

// The heap against a sorted list: things are put in, moved, taken out from anywhere
// and from the front. Places are told rightly, and equals keep their order.
func TestTimers_likeASortedList(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		places := make([]int32, 100)
		for i := range places {
			places[i] = Nowhere
		}
		q := Queue[int32]{Moved: func(what, place int32) { places[what] = place }}
		var s sorted
		distinct := []int{3, 1000}[seed%2] // many are due at once, or few
		for step := range 5_000 {
			what := int32(rng.IntN(len(places)))
			switch rng.IntN(8) {
			case 0, 1:
				q.Remove(places[what])
				s.remove(what)
			case 2:
				if len(s) > 0 {
					if first := q.First(); first != s[0].what || q.Pop() != first {
						t.Fatalf("seed %d, step %d: the first is %d, want %d", seed, step, first, s[0].what)
					}
					s = s[1:]
				}
			case 3:
				if rng.IntN(500) == 0 {
					q.Clear()
					s = nil
					for i := range places {
						places[i] = Nowhere
					}
				}
			default:
				due := time.Duration(rng.IntN(distinct))
				q.Set(what, places[what], due)
				s.set(what, due)
			}
			next := Never
			if len(s) > 0 {
				next = s[0].due
			}
			if q.Next() != next || q.Len() != len(s) {
				t.Fatalf("seed %d, step %d: next %v of %d, want %v of %d", seed, step, q.Next(), q.Len(), next, len(s))
			}
			in := 0
			for what, place := range places {
				if place != Nowhere {
					in++
					if i := slices.IndexFunc(s, func(i item) bool { return i.what == int32(what) }); i < 0 || q.Due(place) != s[i].due || q.heap[place].what != int32(what) {
						t.Fatalf("seed %d, step %d: %d is not at %d", seed, step, what, place)
					}
				}
			}
			if in != len(s) {
				t.Fatalf("seed %d, step %d: %d have places of %d", seed, step, in, len(s))
			}
		}
	}
}

// Nothing that has left the queue is kept from the collector, and none of it allocates
// once it has grown.
func TestQueue_keepsNothing(t *testing.T) {
	var q Queue[*int]
	for i := range 100 {
		q.Add(time.Duration(i), &i)
	}
	for range 60 {
		q.Pop()
	}
	q.Clear()
	for i, e := range q.heap[:cap(q.heap)] {
		if e.what != nil {
			t.Fatalf("place %d of an empty queue still points to something", i)
		}
	}
	n := 0
	if a := testing.AllocsPerRun(100, func() {
		q.Add(time.Duration(n%7), &n)
		if n++; n%3 == 0 {
			q.Pop()
			q.Pop()
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

// standard is the same with container/heap, which the queue is measured against.
type standard []entry[int32]

func (s standard) Len() int           { return len(s) }
func (s standard) Less(i, j int) bool { return s[i].before(&s[j]) == 1 }
func (s standard) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standard) Push(x any)        { *s = append(*s, x.(entry[int32])) }
func (s *standard) Pop() any {
	x := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return x
}

// A queue of so many events, each of which, when its time comes, is put in again.
func BenchmarkPopAdd(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		ahead := make([]time.Duration, 1<<16)
		for i := range ahead {
			ahead[i] = 5_000 + time.Duration(rng.Int64N(40_000))
		}
		b.Run(fmt.Sprintf("queue/n=%d", n), func(b *testing.B) {
			var q Queue[int32]
			for i := range n {
				q.Add(ahead[i&0xffff], int32(i))
			}
			b.ReportAllocs()
			for i := range b.N {
				due := q.Next()
				q.Add(due+ahead[i&0xffff], q.Pop())
			}
		})
		b.Run(fmt.Sprintf("standard/n=%d", n), func(b *testing.B) {
			var s standard
			for i := range n {
				heap.Push(&s, entry[int32]{ahead[i&0xffff], uint64(i), int32(i)})
			}
			b.ReportAllocs()
			for i := range b.N {
				e := heap.Pop(&s).(entry[int32])
				heap.Push(&s, entry[int32]{e.due + ahead[i&0xffff], uint64(n + i), e.what})
			}
		})
	}
}

// Of so many timers one is set to another time, as those of a table are.
func BenchmarkSet(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			places := make([]int32, n)
			q := Queue[int32]{Moved: func(what, place int32) { places[what] = place }}
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range n {
				q.Add(time.Duration(rng.IntN(1000)), int32(i))
			}
			now := time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				first := q.First()
				now = q.Next()
				q.Set(first, places[first], now+500+time.Duration(first%512))
			}
		})
	}
}
