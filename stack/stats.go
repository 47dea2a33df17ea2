package stack

import (
	"weft/conga"
	"weft/resequencer"
)

// Stats is a snapshot of a Host's counters, all since New.
type Stats struct {
	Egress  EgressStats  `json:"egress"`
	Ingress IngressStats `json:"ingress"`
	// Paths lists what was sent by each bouncing switch, in the order of their
	// addresses, or by each path of a Tunnel.
	Paths       []PathStats       `json:"paths"`
	Resequencer resequencer.Stats `json:"resequencer"`
	Tunnel      TunnelStats       `json:"tunnel"` // zero without one
	TCP         TCPStats          `json:"tcp"`
	Liveness    LivenessStats     `json:"liveness"`
	Samples     SampleStats       `json:"samples"`
	Conga       conga.Stats       `json:"conga"` // zero unless the policy is conga
}

// TCPStats are netstack's own counters.
type TCPStats struct {
	SegmentsSent     uint64 `json:"segments_sent"`
	SegmentsReceived uint64 `json:"segments_received"`
	Retransmits      uint64 `json:"retransmits"`
	Timeouts         uint64 `json:"timeouts"`      // retransmission timeouts
	FastRecovery     uint64 `json:"fast_recovery"` // times that fast recovery was entered
}

// Stats returns the Host's counters.
func (h *Host) Stats() Stats {
	var s Stats
	s.Egress, s.Paths = h.egress.Stats()
	s.Ingress, s.Resequencer, s.Tunnel = h.ingress.Stats()
	s.Liveness, s.Samples, s.Conga = h.livenessStats(), h.egress.SampleStats(), h.egress.CongaStats()
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
