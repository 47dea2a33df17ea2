package metrics

import (
	"weft/internal/dataplane"
	"weft/internal/probe"
	"weft/resequencer"
)

var (
	egressPackets  = counter("weft_egress_packets_total", "Packets and super-segments on their way out, by what they were sent as: carried (by a bouncing switch), direct (same rack, or not to the fabric), plain (no carrier proved).", "as")
	egressDropped  = counter("weft_egress_dropped_packets_total", "Packets dropped on their way out, by cause.", "cause")
	egressEvicted  = counter("weft_egress_evictions_total", "Entries forgotten because a table on the way out was full, by table.", "table")
	ingressPackets = counter("weft_ingress_packets_total", "Packets and super-segments read from the fabric's device.")
	ingressTaken   = counter("weft_ingress_delivered_packets_total", "Packets handed to TCP, UDP and ICMP.")
	ingressMerged  = counter("weft_ingress_merged_segments_total", "TCP segments merged into a delivered one before them.")
	ingressDropped = counter("weft_ingress_dropped_packets_total", "Packets dropped on their way in, by cause.", "cause")
	tunnelDropped  = counter("weft_tunnel_dropped_datagrams_total", "Datagrams of a tunnel that were refused, by cause.", "cause")

	delivered    = counter("weft_resequencer_packets_total", "Packets delivered by the resequencer, by cause. buffer is tcp or datagrams.", "buffer", "cause")
	hold         = declare(0, "weft_resequencer_hold_seconds", "How long runs of packets waited behind a hole, by its end: filled, or timed_out (given up).", "buffer", "end")
	arrivedOOO   = counter("weft_resequencer_arrived_out_of_order_total", "Segments that arrived out of order.", "buffer")
	deliveredOOO = counter("weft_resequencer_delivered_out_of_order_total", "Segments delivered out of order.", "buffer")
	timeouts     = counter("weft_resequencer_holes_total", "Holes given up, by what it turned out to be: late (the original came: the hold was too short), loss (a retransmission came).", "buffer", "was")
	heldPackets  = gauge("weft_resequencer_held_packets", "Packets that wait for others now.", "buffer")
	heldBytes    = gauge("weft_resequencer_held_bytes", "Bytes of packets that wait for others now.", "buffer")
	flows        = gauge("weft_resequencer_flows", "Flows remembered now.", "buffer")
	flowsEvicted = counter("weft_resequencer_flows_evicted_total", "Flows forgotten because there were too many.", "buffer")

	losses = counter("weft_evidence_retransmits_total", "Segments sent again, by what that tells: path (a loss on the path that had carried it), unknown (what had carried it was forgotten), nothing (probes of TCP's, several paths in one piece).", "tells")

	probes    = counter("weft_probes_total", "Probes of paths, by what became of them. late ones are among missed.", "result")
	probeByte = counter("weft_probes_sent_bytes_total", "Bytes of probes sent, with outer headers.")
	echoes    = counter("weft_probes_echoed_total", "Probes of peers that were answered.")
	refused   = counter("weft_probes_refused_total", "Probes of peers that were not answered or not believed, by cause.", "cause")
	verdicts  = counter("weft_path_verdicts_total", "Verdicts on paths: quarantined, readmitted, slow, muted (destinations), unproved (bouncing switches).", "verdict")
	carriers  = counter("weft_carrier_changes_total", "Times that the carrier came into use to racks (taken_up) or went out of use (given_up).", "change")
	stalled   = counter("weft_stalled_seconds_total", "Time for which the process was not run although something was due.")
	watched   = gauge("weft_watched_destinations", "Hosts whose paths are probed now.")
)

// Egress writes the counters of what left through weft. It may be called with the sum of several.
func (w Writer) Egress(all ...dataplane.EgressStats) {
	var s dataplane.EgressStats
	for _, o := range all {
		s.Encapsulated, s.Direct, s.Plain = s.Encapsulated+o.Encapsulated, s.Direct+o.Direct, s.Plain+o.Plain
		s.NoPath, s.TooLong, s.Malformed, s.DeviceDrops = s.NoPath+o.NoPath, s.TooLong+o.TooLong, s.Malformed+o.Malformed, s.DeviceDrops+o.DeviceDrops
		s.PairsEvicted, s.RacksEvicted, s.NarrowsEvicted = s.PairsEvicted+o.PairsEvicted, s.RacksEvicted+o.RacksEvicted, s.NarrowsEvicted+o.NarrowsEvicted
		s.FlowsEvicted, s.GroupsReset = s.FlowsEvicted+o.FlowsEvicted, s.GroupsReset+o.GroupsReset
	}
	w.causes(egressPackets, cause{"carried", s.Encapsulated}, cause{"direct", s.Direct}, cause{"plain", s.Plain})
	w.causes(egressDropped, cause{"no_path", s.NoPath}, cause{"too_long", s.TooLong}, cause{"malformed", s.Malformed}, cause{"device", s.DeviceDrops})
	w.causes(egressEvicted, cause{"pairs", s.PairsEvicted}, cause{"racks", s.RacksEvicted}, cause{"narrows", s.NarrowsEvicted},
		cause{"flows", s.FlowsEvicted}, cause{"groups", s.GroupsReset})
}

// Ingress writes the counters of what came in through weft.
func (w Writer) Ingress(s dataplane.IngressStats) {
	w.count(ingressPackets, s.Packets)
	w.count(ingressTaken, s.Delivered)
	w.count(ingressMerged, s.Merged)
	w.causes(ingressDropped, cause{"malformed", s.Malformed}, cause{"bad_checksum", s.BadChecksum}, cause{"not_for_us", s.NotForUs},
		cause{"martian", s.Martian}, cause{"encapsulated", s.Encapsulated}, cause{"blind_error", s.BlindErrors}, cause{"path_error", s.PathErrors})
}

// Tunnel writes what a tunnel has refused.
func (w Writer) Tunnel(s dataplane.TunnelStats) {
	w.causes(tunnelDropped, cause{"malformed", s.Malformed}, cause{"unknown_peer", s.UnknownPeer}, cause{"forged", s.Forged},
		cause{"replayed", s.Replayed}, cause{"bad_checksum", s.BadChecksum})
}

// Resequencer writes what a buffer, tcp or datagrams, has done.
func (w Writer) Resequencer(buffer string, s resequencer.Stats) {
	for _, c := range []cause{{"in_order", s.InOrder}, {"filled", s.Filled}, {"timed_out", s.TimedOut}, {"loss", s.Loss}, {"retransmission", s.Retransmission},
		{"bound", s.Bound}, {"flushed", s.Flushed}, {"stray", s.Stray}, {"passed", s.Passed}} {
		w.count(delivered, c.n, buffer, c.name)
	}
	w.histogram(hold, &s.HoldFilled, buffer, "filled")
	w.histogram(hold, &s.HoldTimedOut, buffer, "timed_out")
	w.count(arrivedOOO, s.ArrivedOutOfOrder, buffer)
	w.count(deliveredOOO, s.DeliveredOutOfOrder, buffer)
	w.count(timeouts, s.TimeoutsLate, buffer, "late")
	w.count(timeouts, s.TimeoutsLoss, buffer, "loss")
	w.put(heldPackets, float64(s.HeldPackets), buffer)
	w.put(heldBytes, float64(s.HeldBytes), buffer)
	w.put(flows, float64(s.Flows), buffer)
	w.count(flowsEvicted, s.FlowsEvicted, buffer)
}

// Evidence writes what retransmissions have told.
func (w Writer) Evidence(all ...dataplane.EvidenceStats) {
	var path, unknown, nothing uint64
	for _, s := range all {
		path, unknown, nothing = path+s.Losses, unknown+s.Unknown, nothing+s.Probes+s.Runs
	}
	w.causes(losses, cause{"path", path}, cause{"unknown", unknown}, cause{"nothing", nothing})
}

// Probes writes what the probes of all families and carriers have done.
func (w Writer) Probes(all ...probe.Stats) {
	var s probe.Stats
	for _, o := range all {
		a, b := &s.Watcher, &o.Watcher
		a.Sent, a.Answered, a.Missed, a.Late, a.Skipped = a.Sent+b.Sent, a.Answered+b.Answered, a.Missed+b.Missed, a.Late+b.Late, a.Skipped+b.Skipped
		a.Quarantined, a.Readmitted, a.Slow, a.Muted, a.Unproved = a.Quarantined+b.Quarantined, a.Readmitted+b.Readmitted, a.Slow+b.Slow, a.Muted+b.Muted, a.Unproved+b.Unproved
		a.TakenUp, a.GivenUp, a.Bytes, a.Destinations, a.Stalled = a.TakenUp+b.TakenUp, a.GivenUp+b.GivenUp, a.Bytes+b.Bytes, a.Destinations+b.Destinations, max(a.Stalled, b.Stalled)
		s.Echoed, s.Refused, s.Forged, s.Unsent, s.Drops = s.Echoed+o.Echoed, s.Refused+o.Refused, s.Forged+o.Forged, s.Unsent+o.Unsent, s.Drops+o.Drops
	}
	a := &s.Watcher
	w.causes(probes, cause{"sent", a.Sent}, cause{"answered", a.Answered}, cause{"missed", a.Missed}, cause{"late", a.Late}, cause{"skipped", a.Skipped}, cause{"unsent", s.Unsent})
	w.count(probeByte, a.Bytes)
	w.count(echoes, s.Echoed)
	w.causes(refused, cause{"refused", s.Refused}, cause{"forged", s.Forged}, cause{"no_room", s.Drops})
	w.causes(verdicts, cause{"quarantined", a.Quarantined}, cause{"readmitted", a.Readmitted}, cause{"slow", a.Slow}, cause{"muted", a.Muted}, cause{"unproved", a.Unproved})
	w.causes(carriers, cause{"taken_up", a.TakenUp}, cause{"given_up", a.GivenUp})
	w.seconds(stalled, a.Stalled)
	w.put(watched, float64(a.Destinations))
}
