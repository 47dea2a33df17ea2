package spray

import (
	"time"

	"weft/internal/fate"
	"weft/policy"
)

// heeding chooses by what became of a flow's packets: each flow has a policy.Selector of
// its own. What a host's dataplane finds out from TCP headers comes from Data and Acked.
type heeding struct {
	policy   policy.Policy
	seed     uint64
	segments *fate.Segments // of all hosts' flows
	counts   fate.Counts
}

// heeded is what is kept of a flow for that.
type heeded struct {
	fate.Heeded
	flow fate.Flow
}

// segmentsPerHost is how many segments that are under way a host has room for, more than
// a window holds. What does not fit is forgotten, as by a real host.
const segmentsPerHost = 1 << 10

func newHeeding(h *Hosts) *heeding {
	return &heeding{policy: h.policy, seed: h.config.Seed, segments: fate.NewSegments(segmentsPerHost * h.shape.hosts)}
}

// begin returns the state of a flow by the hash of its five-tuple.
func (s *heeding) begin(hash uint64) *heeded {
	return &heeded{Heeded: fate.NewHeeded(s.policy.NewSelector(mix(s.seed, hash)), 0, 0)}
}

func (s *heeding) choose(f *Flow, _ *pair, order []int, _ int, now time.Duration) int {
	return f.heeded.Next(order, now)
}

func (s *heeding) sent(*pair, int, int, time.Duration) {}

// follow takes note that a path carries payload of a flow.
func (s *heeding) follow(f *Flow, seq uint32, payload, path int) {
	x, size := f.heeded, uint32(payload)
	if !s.segments.New(&x.flow, f.hash, seq, size, size, path) {
		s.segments.Again(&x.flow, f.hash, seq, size, size, path, false, &s.counts, x.Lost)
	}
}

// Heeds reports whether acknowledgements must be passed to Acked.
func (h *Hosts) Heeds() bool { return h.heeding != nil }

// Acked takes the content of an acknowledgement to a flow's sender.
func (h *Hosts) Acked(f *Flow, a fate.Ack, now time.Duration) {
	f.heeded.Acked(h.heeding.segments, f.hash, a, now)
}
