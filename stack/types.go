package stack

import (
	"weft/internal/clock"
	"weft/internal/dataplane"
	"weft/internal/probe"
)

// The time of a Simulation.
type (
	// Clock is the time that a Host lives in. Config.Simulation says what one that is not
	// the real time is for. It is
	//
	//	interface {
	//		// Now counts from any fixed point and does not run backwards.
	//		Now() time.Duration
	//		// AfterFunc has f called once d has passed.
	//		AfterFunc(d time.Duration, f func()) Timer
	//	}
	Clock = clock.Clock
	// Timer is a call to come, as *time.Timer is. It has the methods Stop() bool and
	// Reset(d time.Duration) bool.
	Timer = clock.Timer
)

// What Stats and Congestion are made of.
type (
	// EgressStats counts packets on their way out.
	EgressStats = dataplane.EgressStats
	// IngressStats counts packets on their way in.
	IngressStats = dataplane.IngressStats
	// PathStats counts what was sent by one path.
	PathStats = dataplane.PathStats
	// TunnelStats counts datagrams that a Tunnel has refused.
	TunnelStats = dataplane.TunnelStats
	// ProbeStats counts probes of paths.
	ProbeStats = probe.Stats
	// SampleStats counts what a Host does to measure how congested paths are. The
	// probes, and what became of their answers, are Table's.
	SampleStats = probe.SampleStats
	// EvidenceStats counts what retransmissions have told of paths.
	EvidenceStats = dataplane.EvidenceStats
	// Congestion is what a policy that looks at congestion knows of the paths to a rack.
	Congestion = dataplane.Congestion
	// PathCongestion is what samples tell of a path.
	PathCongestion = dataplane.PathCongestion
	// TagCongestion is what CONGA knows of the paths that share a tag.
	TagCongestion = dataplane.TagCongestion
)
