package tcp

import "gvisor.dev/gvisor/pkg/tcpip"

// deferTimeout puts a timeout off if the timer has run late, or if segments wait to be
// processed: one of them may acknowledge what the retransmit timer has run for. Meanwhile the
// timer counts as enabled. Then only an acknowledgement starts it anew. The caller has the
// processor called (timerHandler).
// +checklocks:s.ep.mu
func (s *sender) deferTimeout() bool {
	if late := s.resendTimer.late(); late > 0 {
		// The process has stood still, or has no processor. So segments that have come
		// meanwhile may not have been read yet.
		s.resendTimer.extend(min(late, s.minRTO))
		return true
	}
	if s.ep.segmentQueue.empty() {
		return false
	}
	s.resendTimer.hold()
	return true
}

// settleTimeout carries out a timeout that was put off, unless what was processed since has
// started the timer anew or stopped it. As long as segments wait, it remains put off: the
// processor comes back for them.
// +checklocks:s.ep.mu
// +checklocksexclude:s.rtt.rttMutex
func (s *sender) settleTimeout() tcpip.Error {
	if !s.ep.segmentQueue.empty() || !s.resendTimer.release() {
		return nil
	}
	return s.timedOut()
}
