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

// delayAck reports whether the acknowledgement of what has come can wait for a second
// segment (RFC 5681 §4.2), and starts the timer for it. Only a segment of full size makes it
// wait: more will follow. last is the payload of the latest segment, in bytes. One without
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
	waits := int(s.MaxSentAck.Size(e.rcv.RcvNxt))
	if e.EndpointState() != StateEstablished || e.rcv.pendingRcvdSegments.Len() > 0 ||
		last != s.fullSegment || last < int(e.amss)/2 || waits >= 2*last {
		return false
	}
	s.ackTimer.enable(s.ackDelay())
	return true
}

// ackTimerExpired acknowledges what no second segment has followed.
// +checklocks:s.ep.mu
// +checklocksexclude:s.rtt.rttMutex
func (s *sender) ackTimerExpired() tcpip.Error {
	if !s.ackTimer.isUninitialized() && s.ackTimer.checkExpiration() && s.ep.rcv.RcvNxt != s.MaxSentAck {
		s.sendAck()
	}
	return nil
}
