package dataplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weft/flowcell"
	"weft/resequencer"
)

// choices is one run of a program that makes choices. explore makes all runs there are.
type choices struct {
	trail, of []int
	at        int
}

func (c *choices) choose(n int) int {
	if c.at == len(c.trail) {
		c.trail, c.of = append(c.trail, 0), append(c.of, n)
	}
	c.at++
	return c.trail[c.at-1]
}

// explore calls run for all choices, until it returns an error.
func explore(run func(*choices) error) (runs int, err error) {
	c := &choices{}
	for {
		runs++
		c.at = 0
		if err := run(c); err != nil {
			return runs, err
		}
		c.trail, c.of = c.trail[:c.at], c.of[:c.at]
		for len(c.trail) > 0 && c.trail[len(c.trail)-1]+1 == c.of[len(c.of)-1] {
			c.trail, c.of = c.trail[:len(c.trail)-1], c.of[:len(c.of)-1]
		}
		if len(c.trail) == 0 {
			return runs, nil
		}
		c.trail[len(c.trail)-1]++
	}
}

// twoSides is a host's two programs at the uplink (hostprog/bpf/order.c) and the ingress of
// their reader, with one flow. Before each access of the ingress to what they share, a
// packet may arrive. All segments have one byte; the first has number 0.
type twoSides struct {
	*choices
	handover *handover
	order    *resequencer.Buffer[int]
	now      time.Duration
	numbers  int // of flows in the table that are looked through
	steps    int // of the ingress at which something arrives, at most

	arrivals           []int // still to come
	loses              int   // this one of those diverted is lost; -1: none
	spare              int   // so many more may be diverted; -1: all
	sheds              int   // how often it may be shed or taken back
	dead               bool  // there is no reader
	shed               bool  // the reader has no time for the flow
	next               uint32
	diverted, returned uint64
	socket             []int
	kernel             []int // what it has got
	lost               []int

	// What a mutant does wrong.
	keepsNext, claimsAll, ignoresHoles, followsStrays bool
}

// stray is a segment that is too far away to be its flow's.
const stray = 1 << 20

var orderedFlow = flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: 1, DstPort: 2}

// arrive is what the filter does with the next packet.
func (s *twoSides) arrive() {
	n := s.arrivals[0]
	s.arrivals = s.arrivals[1:]
	held := s.diverted != s.returned
	switch {
	case n >= stray && !s.followsStrays:
		s.kernel = append(s.kernel, n)
		return
	case s.dead || !held && (int32(uint32(n)-s.next) <= 0 || s.spare == 0 || s.shed):
		s.next = max(s.next, uint32(n)+1)
		s.kernel = append(s.kernel, n)
		return
	case s.spare == 0 || s.shed:
		s.kernel = append(s.kernel, n)
		return
	}
	s.spare--
	s.diverted++
	if n == s.loses {
		s.lost = append(s.lost, n)
		return
	}
	s.socket = append(s.socket, n)
}

// meanwhile lets a packet arrive, or not.
func (s *twoSides) meanwhile() {
	if s.steps > 0 && len(s.arrivals) > 0 && s.choose(2) == 1 {
		s.steps--
		s.arrive()
	}
}

func (s *twoSides) Len() int                             { return s.numbers }
func (s *twoSides) Find(*flowcell.FiveTuple) (int, bool) { return 0, true }
func (s *twoSides) Next(int) uint32                      { s.meanwhile(); return s.next }
func (s *twoSides) Diverted(int) uint64                  { s.meanwhile(); return s.diverted }
func (s *twoSides) Parts() int                           { return 1 }
func (s *twoSides) Limit(_, parts int) error             { s.shed = parts == 0; return nil }
func (s *twoSides) Tracks(int) uint16                    { return 0 }
func (s *twoSides) Returned(int) uint64                  { s.meanwhile(); return s.returned }

func (s *twoSides) Return(_ int, next uint32, packets uint64) {
	if s.claimsAll {
		packets = s.diverted
	}
	s.meanwhile()
	if !s.keepsNext {
		s.next = next
	}
	s.meanwhile()
	s.returned = packets
	s.meanwhile()
}

// Place is the resequencer's, but for a mutant.
func (s *twoSides) Place(f *flowcell.FiveTuple) (uint32, bool, bool) {
	next, waits, ok := s.order.Place(f)
	return next, waits && !s.ignoresHoles, ok
}

func (s *twoSides) Resume(f *flowcell.FiveTuple, next uint32, now time.Duration) {
	s.order.Resume(f, next, now)
}

// read is what the reader does with all that is in its socket.
func (s *twoSides) read() {
	batch := s.socket
	s.socket = nil
	var out []int
	for _, n := range batch {
		s.handover.arrived(&orderedFlow, s.now)
		out = s.order.Push(&flowcell.Packet{Flow: orderedFlow, Seq: uint32(n), Payload: 1}, n, s.now, out)
	}
	s.deliver(out, false, true)
}

func (s *twoSides) deliver(out []int, expired, drained bool) {
	for _, n := range out {
		s.meanwhile()
		s.kernel = append(s.kernel, n)
	}
	s.handover.settle(expired, drained, s.now)
}

// expire lets a time pass.
func (s *twoSides) expire(d time.Duration) {
	s.now += d
	out := s.order.Expire(s.now, nil)
	s.deliver(out, len(out) > 0, len(s.socket) == 0)
}

const (
	passTime = 1 << iota // time may pass at any point
	die                  // the reader may die at any point
	shed                 // the flow may be shed at any point, and taken back
)

// run carries all arrivals, and lets choose decide in which order things happen.
func (s *twoSides) run(may int) {
	s.handover.order = s
	for len(s.arrivals) > 0 || len(s.socket) > 0 {
		var actions []func()
		if len(s.arrivals) > 0 {
			actions = append(actions, s.arrive)
		}
		if len(s.socket) > 0 && !s.dead {
			actions = append(actions, s.read)
		}
		if may&passTime != 0 && s.order.Stats().HeldPackets > 0 {
			actions = append(actions, func() { s.expire(time.Second) })
		}
		if may&shed != 0 && s.sheds > 0 {
			actions = append(actions, func() { s.sheds--; s.Limit(0, s.sheds%2) })
		}
		if may&die != 0 && !s.dead {
			actions = append(actions, func() {
				s.dead = true
				s.lost = append(s.lost, s.socket...)
				s.socket, s.lost = nil, append(s.lost, s.order.Flush(nil)...)
			})
		}
		actions[s.choose(len(actions))]()
	}
	for range 4 {
		if !s.dead {
			s.expire(2 * overdue)
		}
	}
}

func newTwoSides(c *choices, arrivals ...int) *twoSides {
	s := &twoSides{choices: c, arrivals: slices.Clone(arrivals), loses: -1, spare: -1, sheds: 2, next: 1, kernel: []int{0}, steps: 3,
		order: resequencer.New[int](resequencer.Config{Flows: 2, Discipline: resequencer.Sequence})}
	s.handover = newHandover(s, s.order, nil)
	return s
}

func (s *twoSides) all() []int {
	all := slices.Concat(s.kernel, s.lost)
	slices.Sort(all)
	return all
}

func permutations(of []int) (all [][]int) {
	if len(of) == 0 {
		return [][]int{nil}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Concat(of[:i], of[i+1:])) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}

// A flow changes hands at any moment, in all ways there are, and no packet is lost, doubled
// or overtaken.
func TestHandover_allInterleavings(t *testing.T) {
	check := func(may, loses int, mutate func(*twoSides), arrivals []int) error {
		whole := append([]int{0}, arrivals...)
		slices.Sort(whole)
		_, err := explore(func(c *choices) error {
			s := newTwoSides(c, arrivals...)
			if s.loses = loses; loses >= 0 {
				s.numbers = 1 // or nobody finds a flow of which nothing came
			}
			if mutate != nil {
				mutate(s)
			}
			s.run(may)
			top := 0
			for _, n := range s.kernel {
				if n > top+1 && may == 0 && loses < 0 {
					return fmt.Errorf("%v arrive: the kernel gets %v; choices %v", arrivals, s.kernel, c.trail)
				}
				top = max(top, n)
			}
			switch {
			case !slices.Equal(s.all(), whole):
				return fmt.Errorf("%v arrive: the kernel has %v, lost are %v; choices %v", arrivals, s.kernel, s.lost, c.trail)
			case !s.dead && (s.diverted != s.returned || len(s.handover.flows) > 0 || s.next != uint32(top)+1 && (may&shed == 0 || s.next > uint32(top)+1)):
				return fmt.Errorf("%v arrive: at the end %d of %d are returned, next is %d; choices %v", arrivals, s.returned, s.diverted, s.next, c.trail)
			case may == 0 && loses < 0 && s.handover.stats.Missed > 0:
				return fmt.Errorf("%v arrive: %d are missed; choices %v", arrivals, s.handover.stats.Missed, c.trail)
			}
			return nil
		})
		return err
	}
	orders := permutations([]int{1, 2, 3, 4, 5})
	copies := [][]int{{2, 1, 3, 3, 4}, {2, 1, 2, 3, 4}, {1, 3, 2, 3, 4}, {2, 2, 1, 4, 3}}
	for _, arrivals := range slices.Concat(orders, copies) {
		if err := check(0, -1, nil, arrivals); err != nil {
			t.Fatal(err)
		}
	}
	for _, arrivals := range [][]int{{2, 1, 3, 4, 5}, {3, 1, 2, 5, 4}, {1, 3, 2, 5, 4}, {5, 4, 3, 2, 1}, {2, 3, 4, 1, 5}} {
		for name, err := range map[string]error{
			"time":           check(passTime, -1, nil, arrivals),
			"death":          check(die, -1, nil, arrivals),
			"a loss":         check(0, arrivals[1], nil, arrivals),
			"the last lost":  check(0, 5, nil, arrivals),
			"time, a loss":   check(passTime, arrivals[0], nil, arrivals),
			"death and time": check(die|passTime, -1, nil, arrivals),
			"shed":           check(shed, -1, nil, arrivals),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, mutate := range map[string]func(*twoSides){
		"where the flow goes on is not told": func(s *twoSides) { s.keepsNext = true },
		"what is on its way is returned":     func(s *twoSides) { s.claimsAll = true },
		"holes are not waited for":           func(s *twoSides) { s.ignoresHoles = true },
	} {
		if !slices.ContainsFunc(slices.Concat(copies, orders), func(arrivals []int) bool { return check(0, -1, mutate, arrivals) != nil }) {
			t.Errorf("not found: %s", name)
		}
	}
}

// What waits in the reader's socket is not lost, however long.
func TestHandover_slowReader(t *testing.T) {
	s := newTwoSides(&choices{})
	s.steps = 0
	s.arrivals = []int{2, 1, 3, 4}
	for range 4 {
		s.arrive()
	}
	late := s.socket[2:]
	s.socket = s.socket[:2]
	s.read()
	for i := range 10 {
		s.now = time.Duration(i+1) * overdue
		s.handover.settle(true, false, s.now)
	}
	s.socket = late
	s.read()
	if s.handover.stats.Missed != 0 || s.diverted != s.returned {
		t.Errorf("%+v, %d of %d returned", s.handover.stats, s.returned, s.diverted)
	}
}

// What comes after it was given up does not change a flow that is straight by then.
func TestHandover_lateArrival(t *testing.T) {
	s := newTwoSides(&choices{})
	s.steps = 0
	s.arrivals = []int{2}
	s.arrive()
	late := s.socket
	s.socket = nil
	s.handover.arrived(&orderedFlow, 0) // another, of which nothing came
	s.diverted++
	for i := range 5 {
		s.now = time.Duration(i+1) * overdue
		s.handover.settle(true, true, s.now)
	}
	if s.diverted != s.returned || len(s.handover.flows) != 0 || s.handover.stats.Missed != 1 {
		t.Fatalf("%d of %d returned, %+v", s.returned, s.diverted, s.handover.stats)
	}
	s.next, s.socket = 9, late
	s.read()
	if s.next != 9 || s.diverted != s.returned || len(s.handover.flows) != 0 {
		t.Errorf("next %d, %d of %d returned", s.next, s.returned, s.diverted)
	}
}
