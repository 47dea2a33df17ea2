package reps

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// Size is how many paths a flow recycles (REPS §3.1).
	Size = 8
	// Freeze is how long no random paths are drawn after a timeout.
	Freeze = 100 * time.Millisecond
	// Explore is how many packets are sent after that until all is as before: a round
	// trip's at 10 Gbit/s and 150 µs. Every Size-th of them takes a random path.
	Explore = 128
)

// Selector chooses the paths of one flow's packets. It takes 48 bytes. It implements
// policy.Selector, and is not safe for concurrent use.
type Selector struct {
	rng   rand.PCG
	thaw  time.Duration // when it is no longer frozen
	ring  [Size]uint16  // paths
	valid uint8         // a bit for each place in ring: it has not been taken since it was written
	full  uint8         // and one for each that has a path
	head  uint8         // the place to be written next
	left  uint8         // packets until exploring ends
	ice   bool          // frozen
}

// New returns the selector of a flow of which nothing is known. What it draws comes from
// seed.
func New(seed uint64) *Selector {
	return &Selector{rng: *rand.NewPCG(seed, 0x72657073)}
}

// Acked recycles the path of a packet, unless the packet met congestion (REPS,
// Algorithm 1).
func (s *Selector) Acked(path int, marked bool, _ time.Duration) {
	if marked || path < 0 || path >= 1<<16 {
		return
	}
	bit := uint8(1) << s.head
	s.ring[s.head] = uint16(path)
	s.valid |= bit
	s.full |= bit
	s.head = (s.head + 1) % Size
}

// melt ends a time without random paths.
func (s *Selector) melt(now time.Duration) {
	if s.ice && now >= s.thaw {
		s.ice, s.left = false, Explore
	}
}

// Lost freezes the selector if a packet has timed out (REPS, Algorithm 1). The path that
// had carried it is taken out of the ring.
func (s *Selector) Lost(path int, timeout bool, now time.Duration) {
	if !timeout {
		return
	}
	for i := range s.ring {
		if int(s.ring[i]) == path {
			s.drop(uint8(i))
		}
	}
	s.melt(now)
	if !s.ice && s.left == 0 {
		s.ice, s.thaw = true, now+Freeze
	}
}

// drop empties a place of the ring.
func (s *Selector) drop(i uint8) {
	s.valid &^= 1 << i
	s.full &^= 1 << i
}

// Next returns the path of the next packet (REPS, Algorithm 2).
func (s *Selector) Next(live []int, now time.Duration) int {
	s.melt(now)
	if s.left > 0 {
		if s.left--; s.left%Size == 0 {
			return s.random(live)
		}
	}
	for s.valid != 0 {
		i := s.oldest(s.valid)
		s.valid &^= 1 << i
		if path, ok := s.take(i, live); ok {
			return path
		}
	}
	for s.ice && s.full != 0 {
		i := s.oldest(s.full)
		s.head = (i + 1) % Size
		if path, ok := s.take(i, live); ok {
			return path
		}
	}
	return s.random(live)
}

// oldest returns the first place from head on that has its bit in set.
func (s *Selector) oldest(set uint8) uint8 {
	i := s.head
	for set>>i&1 == 0 {
		i = (i + 1) % Size
	}
	return i
}

// take returns the path in a place of the ring, or empties the place if the path is not
// live any more.
func (s *Selector) take(i uint8, live []int) (path int, ok bool) {
	path = int(s.ring[i])
	if _, ok = slices.BinarySearch(live, path); !ok {
		s.drop(i)
	}
	return path, ok
}

// random returns a live path, each as likely as it weighs.
func (s *Selector) random(live []int) int { return live[s.rng.Uint64()%uint64(len(live))] }
