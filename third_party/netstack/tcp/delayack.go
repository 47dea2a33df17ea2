package tcp

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// maxAckDelay bounds how long an acknowledgement waits. RFC 5681 §4.2 allows 500 ms.
const maxAckDelay = 40 * time.Millisecond

// ackDelay is a quarter of the least retransmission timeout, which peers are taken to have,
// too.
func (s *sender) ackDelay() time.Duration { return min(s.minRTO/4, maxAckDelay) }

// maxAnswerDelay bounds how long an acknowledgement waits for an answer. The peer waits for that
// at each request, and its least retransmission timeout may be shorter than ours: 2 ms, say.
const maxAnswerDelay = time.Millisecond

// answerDelay is how long an acknowledgement waits for an answer.
func (s *sender) answerDelay() time.Duration { return min(s.ackDelay(), maxAnswerDelay) }

// delayAck reports whether the acknowledgement of what has come can wait for a second
// segment or for an answer (RFC 5681 §4.2), and starts the timer for it. A segment of full size
// makes it wait: more will follow. A single short one makes it wait if the application has
// answered such ones at once. last is the payload of the latest segment, in bytes. One without
// changes nothing.
// +checklocks:e.mu
func (e *Endpoint) delayAck(last int) bool {
	s := e.snd
	if last == 0 && s.ackTimer.enabled() {
		return true
	}
	if last > s.fullSegment && last <= int(e.amss) {
		s.fullSegment = last
	}
	if e.EndpointState() != StateEstablished || e.rcv.pendingRcvdSegments.Len() > 0 {
		return false
	}
	waits := int(s.MaxSentAck.Size(e.rcv.RcvNxt))
	second := last == s.fullSegment && last >= int(e.amss)/2 && waits < 2*last
	answer := s.turns.taken >= turnsToTrust && last < int(e.amss) && waits == last
	if !second && !answer {
		return false
	}
	delay := s.ackDelay()
	if answer {
		delay = s.answerDelay()
	}
	s.ackTimer.enable(delay)
	return true
}

// ackTimerExpired acknowledges what neither a second segment nor an answer has followed.
// +checklocks:s.ep.mu
// +checklocksexclude:s.rtt.rttMutex
func (s *sender) ackTimerExpired() tcpip.Error {
	if !s.ackTimer.isUninitialized() && s.ackTimer.checkExpiration() && s.ep.rcv.RcvNxt != s.MaxSentAck {
		s.turns.taken = 0
		s.sendAck()
	}
	return nil
}

// turnsToTrust is after how many requests in a row that were answered at once an answer is
// waited for.
const turnsToTrust = 3

// turns says whether both ends take turns: a segment comes, and data is sent for it at once.
type turns struct {
	came  int                 // segments with payload since data was sent last
	at    tcpip.MonotonicTime // when the latest of them came
	taken int                 // how many in a row were the only one, and answered at once
}

// request takes note of a segment with payload.
func (t *turns) request(at tcpip.MonotonicTime) {
	t.came++
	t.at = at
}

// answer takes note of data that is sent for the first time. A peer that sends a request in
// several segments may wait for the acknowledgement of the first (RFC 896), so turns are taken
// only where requests are one segment.
func (t *turns) answer(now tcpip.MonotonicTime, delay time.Duration) {
	switch {
	case t.came == 0: // more of the same answer
	case t.came == 1 && now.Sub(t.at) < delay:
		t.taken++
	default:
		t.taken = 0
	}
	t.came = 0
}
