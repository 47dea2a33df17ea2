package tcp

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// NewProtocolHeldBack returns a TCP transport protocol with CUBIC congestion control whose
// connections hold data back while the device's own queue is long, as Linux does (TCP small
// queues, net/ipv4/tcp_output.c: tcp_small_queue_check, tcp_tso_autosize). holds reports
// whether at least so many bytes wait there. It is called with an endpoint locked, by many
// goroutines.
func NewProtocolHeldBack(holds func(bytes int) bool) stack.TransportProtocolFactory {
	return func(s *stack.Stack) stack.TransportProtocol {
		p := newProtocol(s, ccCubic, nil).(*protocol)
		p.holds = holds
		return p
	}
}

// burstShift makes a burst what the connection sends in 1/1024 s.
const burstShift = 10

// maxBurst is in packets, some 4 MB (net.ipv4.tcp_limit_output_bytes).
const maxBurst = 1 << 12

// quota is what the device's queue may hold.
type quota struct {
	bytes int
	time  time.Duration // in which half of it leaves at the connection's rate
}

// quota returns how many bytes a segment may have, at most limit, and how much may wait in
// the device's queue. Both follow the connection's rate: a segment has what is sent in a
// millisecond, and at least two packets; the queue has three such segments, or a millisecond
// where that is more: two, and half again for what a small packet costs in memory, which
// devices may count. Without a measured round trip there is no rate, and the segment has
// limit.
// +checklocks:s.ep.mu
func (s *sender) quota(limit int) (segment int, q quota) {
	s.rtt.Lock()
	srtt := s.rtt.TCPRTTState.SRTT
	s.rtt.Unlock()
	if srtt <= 0 {
		return limit, quota{3 * limit, MinRTO}
	}
	rate := float64(s.SndCwnd) * float64(s.MaxPayloadSize) / srtt.Seconds()
	packets := min(int(rate)>>burstShift/s.MaxPayloadSize, maxBurst)
	burst := max(packets, 2) * s.MaxPayloadSize
	segment = min(limit, burst)
	bytes := max(3*segment, burst)
	return segment, quota{bytes, time.Duration(float64(bytes) / 2 / rate * 1e9)}
}

// holdBack reports whether so much waits in the device's queue already that no new data is
// sent. Then it looks again with the next acknowledgement, and when half of it has left. A
// connection that has nothing in flight is not held back: others may have filled the queue.
// limit is that of quota.
// +checklocks:s.ep.mu
func (s *sender) holdBack(limit int) bool {
	if s.ep.protocol.holds == nil || s.Outstanding == 0 {
		return false
	}
	_, q := s.quota(limit)
	if s.ep.protocol.holds(q.bytes) {
		s.lookAgain(q)
	}
	return s.heldBack
}

// lookAgain has what is held back now be sent later.
// +checklocks:s.ep.mu
func (s *sender) lookAgain(q quota) {
	s.heldBack = true
	if !s.queueTimer.enabled() {
		s.queueTimer.enable(max(q.time, minQueueWait))
	}
}

// refused reports whether the device had no room for a segment with new data. Then nothing of
// it was sent, and it is tried again. As in Linux that is no loss: the network has dropped
// nothing.
// +checklocks:s.ep.mu
func (s *sender) refused(seg *segment, err tcpip.Error) bool {
	if _, full := err.(*tcpip.ErrNoBufferSpace); !full || s.ep.protocol.holds == nil || seg.xmitCount != 1 || seg.payloadSize() == 0 {
		return false
	}
	seg.xmitCount = 0
	_, q := s.quota(s.MaxPayloadSize)
	s.lookAgain(q)
	return true
}

// usesWindow reports whether the window is in use. One that is not, because the device's
// queue is long, says nothing of the network, and must not grow (RFC 7661). outstanding is how
// much was when the acknowledgement came.
// +checklocks:s.ep.mu
func (s *sender) usesWindow(outstanding int) bool {
	return s.ep.protocol.holds == nil || !s.heldBack && s.SndCwnd <= 2*outstanding
}

// minQueueWait is how long it takes at least until a connection looks again.
const minQueueWait = 200 * time.Microsecond

// queueTimerExpired sends what was held back.
// +checklocks:s.ep.mu
// +checklocksexclude:s.rtt.rttMutex
func (s *sender) queueTimerExpired() tcpip.Error {
	if !s.queueTimer.isUninitialized() && s.queueTimer.checkExpiration() && s.heldBack {
		s.sendData()
	}
	return nil
}
