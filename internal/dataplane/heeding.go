package dataplane

import (
	"time"

	"weft/flowcell"
	"weft/internal/fate"
	"weft/policy"
	"weft/topology"
)

// heeding chooses by what became of a flow's packets: each flow has a policy.Selector of
// its own. Evidence tells it what was sent again, ingress what was acknowledged.
type heeding struct {
	policy policy.Policy
	seed   uint64 // of what the selectors draw
	flows  *flowcell.Table[fate.Heeded]
	latest time.Duration // choice
}

func newHeeding(p policy.Policy, seed uint64) *heeding {
	return &heeding{policy: p, seed: seed,
		flows: flowcell.NewTable[fate.Heeded](flowcell.TableConfig[fate.Heeded]{Capacity: maxFlows, Seed: seed})}
}

// choose is asked for packets of TCP that have payload. It makes the selector of a flow
// that is not known.
func (h *heeding) choose(_ *pair, pkt *flowcell.Packet, paths []int, _ int, now time.Duration) int {
	f, added := h.flows.Use(&pkt.Flow, now)
	if added {
		*f = fate.NewHeeded(h.policy.NewSelector(pkt.Flow.Hash(h.seed)), pkt.Seq, now)
	}
	h.latest = now
	return f.Next(paths, now)
}

func (h *heeding) sent(*pair, int, int, time.Duration) {}

// know adds nothing: selectors know of flows, not of racks.
func (h *heeding) know(time.Duration, func(topology.NodeID, Congestion)) {}

// lost takes note that what a path had carried is sent again, in the unit for which choose
// was asked last.
func (h *heeding) lost(flow *flowcell.FiveTuple, path int) {
	if f := h.flows.Get(flow, h.latest); f != nil {
		f.Lost(path)
	}
}

// heed makes an egress find out what becomes of packets, if a policy that is aware in this
// way wants to know.
func (e *Egress) heed(a aware) {
	e.heeding, _ = a.(*heeding)
	e.flights.heeded.Store(e.heeding != nil)
	if e.heeding == nil && e.evidence != nil && e.evidence.unread {
		e.evidence = nil
	}
	if e.heeding != nil && e.evidence == nil {
		// If TCP does not send such probes, a selector hears of some losses late.
		e.evidence = newEvidence(e.seed, true)
		e.evidence.unread = true
	}
	if e.evidence != nil {
		e.evidence.heeding = e.heeding
	}
}
