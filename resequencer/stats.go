package resequencer

import (
	"time"

	"weft/internal/histogram"
)

// Stats counts packets since New, and says how many are held now.
type Stats struct {
	// Packets delivered, by cause. The causes exclude each other; their sum is
	// the number of packets pushed less HeldPackets.
	InOrder        uint64 `json:"in_order"`       // was next in its flow, or the first of its flow
	Filled         uint64 `json:"filled"`         // held until the gap before it was filled
	TimedOut       uint64 `json:"timed_out"`      // held until the gap before it was declared lost
	Loss           uint64 `json:"loss"`           // behind a gap that is loss, by its flowcell or because it was declared lost (Juggler)
	Retransmission uint64 `json:"retransmission"` // begins below data that was delivered or declared lost
	Bound          uint64 `json:"bound"`          // held, delivered early to keep within a bound
	Flushed        uint64 `json:"flushed"`        // held until Flush, or until its flow was reset or began anew
	Stray          uint64 `json:"stray"`          // too far from the flow to be its sender's, or the first after the flow has leapt
	Passed         uint64 `json:"passed"`         // occupies no sequence space, is a reset, or came while Off

	// Segments that begin below the highest sequence number seen before them in their
	// flow (RFC 4737 §3.3's "reordered", on byte numbers), where packets enter and where
	// they leave. Both include retransmissions.
	ArrivedOutOfOrder   uint64 `json:"arrived_out_of_order"`
	DeliveredOutOfOrder uint64 `json:"delivered_out_of_order"`

	TimeoutsLate   uint64 `json:"timeouts_late"`    // holes declared lost that the original filled after all: the hold was too short
	TimeoutsLoss   uint64 `json:"timeouts_loss"`    // holes declared lost that a retransmission filled
	TimeoutsPutOff uint64 `json:"timeouts_put_off"` // times that a wait was extended because more data arrived behind the hole
	Timeouts       uint64 `json:"timeouts"`         // holes declared lost because their time was up
	// TimeoutsWait is how long flows waited for holes that were then declared lost, one
	// after the other. A hole that was known before the last counted one was declared
	// lost does not count.
	TimeoutsWait    time.Duration `json:"timeouts_wait_ns"`
	Leaps           uint64        `json:"leaps"`            // times that strays moved a flow to another place
	FlowsNumbered   uint64        `json:"flows_numbered"`   // flows found to number their flowcells
	FlowsUnnumbered uint64        `json:"flows_unnumbered"` // flows found not to number, or not to keep a flowcell to one path

	HeldPackets    int `json:"held_packets"`
	MaxHeldPackets int `json:"max_held_packets"`
	HeldBytes      int `json:"held_bytes"`
	MaxHeldBytes   int `json:"max_held_bytes"`

	// HoldFilled and HoldTimedOut are how long runs of held packets waited for a hole, those
	// that were delivered because it was filled, and those that were because their time was up.
	HoldFilled   histogram.Histogram `json:"-"`
	HoldTimedOut histogram.Histogram `json:"-"`

	Flows        int    `json:"flows"`         // remembered now
	FlowsEvicted uint64 `json:"flows_evicted"` // forgotten because Config.Flows were remembered
}

// Delivered sums the packets delivered, whatever the cause.
func (s Stats) Delivered() uint64 {
	return s.InOrder + s.Filled + s.TimedOut + s.Loss + s.Retransmission + s.Bound + s.Flushed + s.Stray + s.Passed
}

// peak takes note of what is held, before some of it is released.
func (s *Stats) peak() {
	s.MaxHeldPackets = max(s.MaxHeldPackets, s.HeldPackets)
	s.MaxHeldBytes = max(s.MaxHeldBytes, s.HeldBytes)
}
