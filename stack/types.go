package stack

import (
	"weft/internal/clock"
	"weft/internal/dataplane"
)

// What a Config is made of.
type (
	// Device is the network below a Host; package link has implementations and
	// describes the methods: Read, Write, MTU and Close.
	Device = dataplane.Device
	// SuperDevice is what a Device has besides if it carries super-segments.
	SuperDevice = dataplane.SuperDevice
	// PathDevice is what a Device has besides if it chooses paths and encapsulates.
	PathDevice = dataplane.PathDevice
	// Tunnel is a fabric that knows nothing of weft, in place of Topology and Device:
	// packets travel in UDP.
	Tunnel = dataplane.Tunnel
	// Peer is another end of a Tunnel.
	Peer = dataplane.Peer
	// Underlay carries a Tunnel's datagrams; link.OpenUDP opens one.
	Underlay = dataplane.Underlay
	// Clock is the time that a Host lives in; Config.Clock says what one that is not the
	// real time is for.
	Clock = clock.Clock
	// Timer is a call to come, as *time.Timer is.
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
	// EvidenceStats counts what retransmissions have told of paths.
	EvidenceStats = dataplane.EvidenceStats
	// Congestion is what a policy that looks at congestion knows of the paths to a rack.
	Congestion = dataplane.Congestion
	// PathCongestion is what samples tell of a path.
	PathCongestion = dataplane.PathCongestion
	// TagCongestion is what CONGA knows of the paths that share a tag.
	TagCongestion = dataplane.TagCongestion
)
