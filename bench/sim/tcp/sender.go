package tcp

import (
	"math"
	"time"
)

// Segment is a packet that a Sender wants to send. One of Len 0 opens the
// connection (Config.Handshake).
type Segment struct {
	Seq        int64 // bytes since the flow's first
	Len        int32
	Retransmit bool
}

// Ack is a Receiver's answer to each packet.
type Ack struct {
	Cum int64 // all bytes below have arrived
	// Sacked and SackedLen are the block beyond a hole that the packet belongs to,
	// the first of RFC 2018's; SackedLen is 0 if there is no hole.
	Sacked    int64
	SackedLen int32
	ECE       bool // the packet bore a congestion mark
	// Echo is when the packet was sent; below 0 for one that was sent again, for
	// which it is unknown (Karn) without Config.Timestamps.
	Echo time.Duration
}

type phase uint8

const (
	opening    phase = iota // waits for the answer to its first packet
	open                    // no loss known
	recovering              // sends again what was lost, at the halved window
	restarting              // the same after a timeout, beginning with one segment
)

// none is the time of what is not going to happen.
const none = time.Duration(math.MaxInt64)

// Sender is the sending side of a connection. The zero value must be started. Start may
// be called again for another connection. A Sender may be moved. After a copy only one of
// the two may be used, since they share memory. It is not safe for concurrent use.
//
// What most acknowledgements need lies together, in two cache lines up to board.missing.
type Sender struct {
	c     *Config
	all   int64 // segments
	total int64 // bytes

	cwnd, ssthresh int32 // bytes
	limit          int32 // of what is under way: the receiver's window, in whole segments
	recalled       int32 // cwnd as it was recalled, 0: it began as the initial window
	grown          int32 // acknowledged since the window last grew by a segment
	phase          phase
	fast           bool // the first lost segment goes at once, whatever is under way
	backoff        uint8
	measured       bool     // there is a round trip time
	recover        int64    // recovery ends when all before this segment is acknowledged
	sub            *subflow // nil: a connection by itself

	srtt, rttvar time.Duration
	deadline     time.Duration // of the retransmission timer

	board   scoreboard
	marks   marks
	reduced int64 // the first segment sent after the last reduction by marks

	retransmits, timeouts, dupAcks uint32
}

// Start begins a connection that sends total bytes; 0: without end. c comes from
// WithDefaults and must not change.
func (s *Sender) Start(c *Config, total int64) {
	window := c.window()
	s.board.reset(window)
	*s = Sender{c: c, board: s.board, total: total, phase: open, reduced: -1, deadline: none}
	if s.total <= 0 {
		s.total = math.MaxInt64 - int64(c.MSS)
	}
	s.all = c.segments(s.total)
	s.limit = int32(window) * int32(c.MSS)
	s.cwnd = int32(min(int64(c.InitialWindow), window)) * int32(c.MSS)
	s.ssthresh = s.limit
	s.marks.reset()
	if c.Handshake {
		s.phase = opening
		s.board.missing = 1 // nothing is under way yet
	}
}

// Next returns the next segment to send now, and false if there is none.
func (s *Sender) Next(now time.Duration) (Segment, bool) {
	b := &s.board
	if s.phase == opening {
		return s.open(now)
	}
	mss := int64(s.c.MSS)
	if (b.pipe()+1)*mss > int64(s.cwnd) && !s.fast {
		return Segment{}, false
	}
	s.fast = false
	if b.missing > 0 {
		i := b.resend()
		s.retransmits++
		if s.deadline == none || i == b.una {
			s.deadline = now + s.rto()
		}
		return s.segment(i, true), true
	}
	if b.next == s.all || (b.next+1-b.una)*mss > int64(s.limit) {
		return Segment{}, false
	}
	if s.sub != nil && !s.sub.take(b) {
		return Segment{}, false
	}
	if s.deadline == none {
		s.deadline = now + s.rto()
	}
	b.next++
	return s.segment(b.next-1, false), true
}

func (s *Sender) segment(i int64, again bool) Segment {
	mss := int64(s.c.MSS)
	rest := s.total - i*mss
	if s.sub != nil {
		rest = s.sub.group.total - s.sub.of(i)*mss
	}
	return Segment{Seq: i * mss, Len: int32(min(mss, rest)), Retransmit: again}
}

// open returns the packet that opens the connection, if it is to be sent now.
func (s *Sender) open(now time.Duration) (Segment, bool) {
	if s.board.missing == 0 {
		return Segment{}, false
	}
	s.board.missing = 0
	s.deadline = now + s.rto()
	return Segment{Retransmit: s.backoff > 0}, true
}

// Ack takes an acknowledgement. Then more may be sent: call Next.
func (s *Sender) Ack(a Ack, now time.Duration) {
	b := &s.board
	if a.Echo >= 0 {
		s.sample(now - a.Echo)
	}
	if s.phase == opening {
		s.phase, s.deadline = open, none
		return
	}
	if a.SackedLen > 0 {
		mss := int64(s.c.MSS)
		from := a.Sacked / mss
		b.sack(from, from+s.c.segments(int64(a.SackedLen)), s.c.DupThresh)
	}
	// Most acknowledgements are of one more segment.
	if una := b.una * int64(s.c.MSS); a.Cum > una {
		to := min(b.una+s.c.segments(a.Cum-una), b.next)
		s.advance(to, int32(a.Cum-una), a.ECE, now)
	} else if a.Cum == una && b.next > b.una {
		s.dupAcks++
	}
	s.mark(a.ECE)
	if s.phase == open && b.missing > 0 {
		s.phase, s.recover, s.fast = recovering, b.next, true // RFC 6675 §5, step 4
		s.halve()
		s.cwnd = s.ssthresh
	}
	if s.sub != nil {
		s.sub.group.note(s.sub.number, s)
	}
}

// advance goes on to segment to, after so many bytes.
func (s *Sender) advance(to int64, bytes int32, marked bool, now time.Duration) {
	b := &s.board
	unused := s.sub != nil && (b.next-b.una+1)*int64(s.c.MSS) <= int64(s.cwnd)
	b.acknowledge(to)
	s.deadline = none
	if b.next > b.una {
		s.deadline = now + s.rto()
	}
	done := b.una >= s.recover
	switch {
	case s.phase == recovering && done:
		s.phase = open
	case s.phase == recovering:
		// A partial acknowledgement: what it stops at was lost, too (RFC 6582),
		// though fewer than DupThresh segments may tell.
		b.lose(b.una + 1)
	default:
		if done {
			s.phase = open
		}
		// What bounds a subflow may be the window that it shares (RFC 7661).
		if !marked && !unused {
			s.grow(bytes)
		}
	}
}

// Deadline returns when the retransmission timer is due. ok is false if it does not run.
// It usually moves later with every acknowledgement, but after a measurement it may be
// earlier than before.
func (s *Sender) Deadline() (time.Duration, bool) { return s.deadline, s.deadline != none }

// Timeout must be called at Deadline; earlier calls do nothing. Then call Next.
func (s *Sender) Timeout(now time.Duration) {
	if now < s.deadline {
		return
	}
	s.timeouts++
	if s.backoff < maxBackoff {
		s.backoff++
	}
	s.deadline = none // until the next packet leaves
	if s.phase == opening {
		s.board.missing = 1
		return
	}
	s.halve()
	s.cwnd = int32(s.c.MSS)
	s.phase, s.recover = restarting, s.board.next
	s.board.loseAll()
	if s.sub != nil {
		s.sub.lendAll(&s.board)
		s.sub.group.note(s.sub.number, s)
	}
}

// Done reports whether all bytes have been acknowledged.
func (s *Sender) Done() bool { return s.board.una == s.all }

// Stats returns how many segments were sent again, how often the timer ran out, and how
// many acknowledgements came that acknowledged nothing new while data was in flight (RFC
// 5681 §2).
func (s *Sender) Stats() (retransmits, timeouts, dupAcks uint32) {
	return s.retransmits, s.timeouts, s.dupAcks
}
