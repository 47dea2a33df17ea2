package balance

import "time"

// LeafSamples is what a leaf switch's samples say of the paths to a rack: its row of the
// congestion table (Luopan §3.1). It is struct sampling of fabric/bpf/leaf.c.
type LeafSamples struct {
	Due, Began uint64 // ns: when the next round begins; when the latest has
	Until      uint64 // how long the best path may be taken
	Rank       uint64 // of the idlest path, by queue
	Quick      uint64 // of the fastest path, by round trip
	RTT        uint64 // ns, smoothed
	Asked      uint64 // the number of the latest round
	Shown      uint64 // the round that the best path is of
	Token      [MaxLeafSamples]uint64
	Path       [MaxLeafSamples]uint32
	Host       [4]byte // who is asked
	Source     [4]byte // in whose name
	Best       uint32  // the idlest one; the fastest if a sample of the round has no queue
	Silent     uint32  // rounds without an answer in a row
	Idlest     uint32
	Fastest    uint32
	Unmetered  uint32 // 1: a sample of the round has no queue
	_          uint32
}

const (
	leastPatient = 10 * time.Millisecond // for a round's answers
	mostPatient  = time.Second
	maxSilent    = 7
)

// LeastExpiry is how long a sample is good at least, without an expiry in the rule: Luopan's
// 40 µs at 10 Gbit/s (§4.3), and as many bytes at other rates in bit/s. A rate of 0 is one that is not known.
func LeastExpiry(rateBits float64) time.Duration {
	if rateBits <= 0 {
		rateBits = 10e9
	}
	return min(time.Duration(40e-6*10e9/rateBits*float64(time.Second)), mostPatient)
}

// leastSampled is Luopan's choice (§3.2): the best sample's path, while it is good. Else it
// is a random one.
func (l *Leaf) leastSampled(r *LeafRack, now uint64) uint32 {
	if s := l.Round[r.Number]; now < s.Until && r.Live(s.Best) {
		l.Guided++
		return s.Best
	}
	return uint32(r.Order[l.Engine.below(r.N)])
}

// Ask begins a round of samples if one is due, and returns their paths. Tokens are the
// caller's.
func (l *Leaf) Ask(r *LeafRack, source, host [4]byte, now uint64, token func() uint64) (paths []uint32) {
	s := l.Round[r.Number]
	if r.N < 2 || int64(now-s.Due) < 0 {
		return nil
	}
	if s.Asked != 0 && s.Shown != s.Asked {
		s.Silent = min(s.Silent+1, maxSilent)
	}
	s.Due = now + s.patience()
	s.Began, s.Host, s.Source = now, host, source
	s.Asked++
	s.Token = [MaxLeafSamples]uint64{}
	var places []uint32
	n := min(uint32(l.Rule.Samples), r.N)
	for i := range n { // R. Floyd's algorithm
		to := r.N - n + i
		at := l.Engine.below(to + 1)
		for _, p := range places {
			if p == at {
				at = to
				break
			}
		}
		places = append(places, at)
		s.Path[i], s.Token[i] = uint32(r.Order[at]), token()
		paths = append(paths, s.Path[i])
	}
	l.Round[r.Number] = s
	return paths
}

// patience is how long a round may go without an answer. Racks that never answer are asked
// more and more seldom.
func (s *LeafSamples) patience() uint64 {
	p := max(4*s.RTT, uint64(leastPatient)) << s.Silent
	return min(p, uint64(mostPatient))
}

// LeafAnswer is an answer to a sample.
type LeafAnswer struct {
	From, To [4]byte
	Token    uint64
	Path     uint32
	Queue    uint8 // by the meters' unit
	Meters   uint8 // switches that have added to it
	Marked   bool
}

// Learn takes an answer, and reports whether it is one to the rack's latest round.
func (l *Leaf) Learn(rack uint32, a LeafAnswer, now uint64) bool {
	s := l.Round[rack]
	which := -1
	for i := range s.Token {
		if a.Token != 0 && s.Token[i] == a.Token && s.Path[i] == a.Path {
			which = i
		}
	}
	if which < 0 || a.From != s.Host || a.To != s.Source {
		return false
	}
	s.Token[which] = 0
	took := now - s.Began
	rank, quick := uint64(a.Queue), took&(1<<32-1)
	if a.Marked {
		rank |= 1 << 40
		quick |= 1 << 40
	}
	if s.Shown != s.Asked {
		if s.RTT == 0 {
			s.RTT = took
		} else {
			s.RTT += took/8 - s.RTT/8
		}
		lasts := uint64(l.Rule.Expiry)
		if lasts == 0 {
			lasts = max(s.RTT, uint64(l.LeastExpiry))
		}
		s.Shown, s.Silent = s.Asked, 0
		s.Due, s.Until = now+lasts, now+lasts+s.RTT // the next round's answer is due then
		s.Rank, s.Quick, s.Unmetered = 1<<64-1, 1<<64-1, 0
	}
	if rank < s.Rank {
		s.Rank, s.Idlest = rank, a.Path
	}
	if quick < s.Quick {
		s.Quick, s.Fastest = quick, a.Path
	}
	if a.Meters == 0 {
		s.Unmetered = 1
	}
	s.Best = s.Idlest
	if s.Unmetered == 1 { // queues and round trips cannot be compared
		s.Best = s.Fastest
	}
	l.Round[rack] = s
	return true
}
