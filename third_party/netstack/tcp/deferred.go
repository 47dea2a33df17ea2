package tcp

import "gvisor.dev/gvisor/pkg/tcpip"

// deferTimeout puts a timeout off if the process has been late, or if segments wait to be
// processed: one of them may acknowledge what the retransmit timer has run for. Meanwhile the
// timer counts as enabled. Then only an acknowledgement starts it anew. The caller has the
// processor called (timerHandler).
// +checklocks:s.ep.mu
func (s *sender) deferTimeout() bool {
	if wait := s.patience(); wait > 0 {
		s.resendTimer.extend(wait)
		return true
	}
	if s.ep.segmentQueue.empty() {
		return false
	}
	s.resendTimer.hold()
	return true
}

// settleTimeout carries out a timeout that was put off, unless what was processed since has
// started the timer anew or stopped it.
// +checklocks:s.ep.mu
// +checklocksexclude:s.rtt.rttMutex
func (s *sender) settleTimeout() tcpip.Error {
	if !s.resendTimer.release() {
		return nil
	}
	return s.timedOut()
}
