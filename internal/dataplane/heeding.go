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
func (h *heeding) know(time.Duration, func(topology.NodeID, uint32, Congestion)) {}

// lost takes note that what a path had carried is sent again, in the unit for which choose
// was asked last.
func (h *heeding) lost(flow *flowcell.FiveTuple, path int) {
	if f := h.flows.Get(flow, h.latest); f != nil {
		f.Lost(path)
	}
}

// heed makes an egress find out what becomes of packets, if the policies of some lanes
// want to know.
func (e *Egress) heed() {
	e.heeding = nil
	for _, l := range e.lanes {
		if l.heeding != nil {
			e.heeding = append(e.heeding, l.heeding)
		}
	}
	heeds := len(e.heeding) > 0
	e.flights.heeded.Store(heeds)
	switch v := e.evidence; {
	case heeds:
		e.flights.on.Store(true)
		if v == nil {
			// If TCP does not send such probes, a selector hears of some losses late.
			e.evidence = newEvidence(e.seed, true)
			e.evidence.unread = true
		}
	case v != nil && v.unread:
		e.evidence = nil
	}
	if e.evidence != nil {
		e.evidence.heeding = e.heeding
	}
}
