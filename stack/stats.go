package stack

import (
	"weft/conga"
	"weft/resequencer"
)

// Stats is a snapshot of a Host's counters, all since New.
type Stats struct {
	Egress  EgressStats
	Ingress IngressStats
	// Paths lists what was sent by each bouncing switch, in the order of their
	// addresses, or by each path of a Tunnel.
	Paths       []PathStats
	Resequencer resequencer.Stats
	Tunnel      TunnelStats // zero without one
	TCP         TCPStats
	Liveness    LivenessStats
	Samples     SampleStats
	Conga       conga.Stats // zero unless the policy is conga
}

// TCPStats are netstack's own counters.
type TCPStats struct {
	SegmentsSent     uint64
	SegmentsReceived uint64
	Retransmits      uint64
	Timeouts         uint64 // retransmission timeouts
	FastRecovery     uint64 // times that fast recovery was entered
}

// Stats returns the Host's counters.
func (h *Host) Stats() Stats {
	var s Stats
	s.Egress, s.Paths = h.egress.Stats()
	s.Ingress, s.Resequencer, s.Tunnel = h.ingress.Stats()
	if h.monitor != nil {
		s.Liveness = h.monitor.snapshot()
	}
	if h.sampler != nil {
		s.Samples = h.sampler.snapshot()
	}
	s.Conga = h.egress.CongaStats()
	t := h.net.Stats().TCP
	s.TCP = TCPStats{
		SegmentsSent:     t.SegmentsSent.Value(),
		SegmentsReceived: t.ValidSegmentsReceived.Value(),
		Retransmits:      t.Retransmits.Value(),
		Timeouts:         t.Timeouts.Value(),
		FastRecovery:     t.FastRecovery.Value() + t.SACKRecovery.Value(),
	}
	return s
}
