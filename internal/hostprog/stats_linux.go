package hostprog

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/kernel"
)

// SprayStats counts the packets that left by an uplink since the program was attached, and those
// that programs counted before whose place it took (Plus): those of IPv4 by outcome. A
// super-segment counts as its segments if it was encapsulated, otherwise as one.
type SprayStats struct {
	Seen         uint64 `json:"seen"` // of all protocols: each packet for which the program ran
	Encapsulated uint64 `json:"encapsulated"`

	// These left unchanged because the program is not for them: they go to the host's own
	// rack or not to the fabric, have another source, or are IP-in-IP already.
	Passed uint64 `json:"passed"`

	// These also left unchanged, by the fabric's own routes.
	Plain      uint64 `json:"plain"`      // to racks that are plain (SetPlain)
	Unattended uint64 `json:"unattended"` // no Beat within SprayConfig.Patience

	// These could not be encapsulated. They left as they were or, with
	// SprayConfig.Require, were dropped.
	Refused   uint64 `json:"refused"`   // in another tunnel already, which the kernel does not encapsulate again
	NoPath    uint64 `json:"no_path"`   // no live path to the rack
	TooLong   uint64 `json:"too_long"`  // above the uplink's MTU with the outer header; the route's MTU is too large
	Malformed uint64 `json:"malformed"` // lengths that contradict each other; more than 64 KB in one of IPv6 (BIG TCP)

	// Broken were dropped: the kernel made room for the outer header and then refused to
	// write it.
	Broken uint64 `json:"broken"`

	// These count the addresses whose TCP is cut, or all addresses if paths are drawn. A
	// flow that was evicted begins again and counts anew.
	Flows     uint64 `json:"flows"`
	Flowcells uint64 `json:"flowcells"`
	Chosen    uint64 `json:"chosen,omitempty"` // flowcells that took the path of Choose; others took a random one

	Long LongStats `json:"long,omitzero"`
	Late LateStats `json:"late_cut,omitzero"`

	// These count SprayConfig.Datagrams. A flow that was evicted counts anew.
	Datagrams     uint64 `json:"datagrams,omitempty"`
	DatagramFlows uint64 `json:"datagram_flows,omitempty"`

	// These count marks of CONGA's that have come, and those that do not count because their
	// sender has not shown that it sees what is sent to it; and hosts of which the program has
	// begun to remember reports: one that was evicted counts anew.
	Marked        uint64 `json:"marked,omitempty"`
	UnprovenMarks uint64 `json:"unproven_marks,omitempty"`
	Peers         uint64 `json:"peers,omitempty"`

	// Forwarded counts the TCP connections of SprayConfig.Forwarded. One that was evicted counts anew.
	// ForwardedLong counts packets that this host forwarded and that did not fit with an outer
	// header: of connections that are older than the program, and datagrams. They left as they were.
	Forwarded     uint64 `json:"forwarded,omitempty"`
	ForwardedLong uint64 `json:"forwarded_long,omitempty"`

	Bounces []BounceStats `json:"bounces"` // by address
}

// Plus returns s with what a program has counted that s has replaced. The program's bouncing
// switches that s does not have are left out, so that what is kept does not grow.
func (s SprayStats) Plus(replaced SprayStats) SprayStats {
	for _, c := range []struct {
		to   *uint64
		more uint64
	}{
		{&s.Seen, replaced.Seen}, {&s.Encapsulated, replaced.Encapsulated}, {&s.Passed, replaced.Passed},
		{&s.Plain, replaced.Plain}, {&s.Unattended, replaced.Unattended}, {&s.Refused, replaced.Refused},
		{&s.NoPath, replaced.NoPath}, {&s.TooLong, replaced.TooLong}, {&s.Malformed, replaced.Malformed},
		{&s.Broken, replaced.Broken}, {&s.Flows, replaced.Flows}, {&s.Flowcells, replaced.Flowcells}, {&s.Chosen, replaced.Chosen},
		{&s.Long.Sent, replaced.Long.Sent}, {&s.Long.Bytes, replaced.Long.Bytes}, {&s.Long.Again, replaced.Long.Again},
		{&s.Late.HandedOver, replaced.Late.HandedOver}, {&s.Late.Returned, replaced.Late.Returned},
		{&s.Datagrams, replaced.Datagrams}, {&s.DatagramFlows, replaced.DatagramFlows},
		{&s.Marked, replaced.Marked}, {&s.UnprovenMarks, replaced.UnprovenMarks}, {&s.Peers, replaced.Peers},
		{&s.Forwarded, replaced.Forwarded}, {&s.ForwardedLong, replaced.ForwardedLong},
	} {
		*c.to += c.more
	}
	s.Bounces = slices.Clone(s.Bounces)
	for i := range s.Bounces {
		b := &s.Bounces[i]
		at := slices.IndexFunc(replaced.Bounces, func(o BounceStats) bool { return o.Addr == b.Addr && o.Uplink == b.Uplink })
		if at >= 0 {
			o := replaced.Bounces[at]
			b.Packets, b.Bytes, b.Flowcells = b.Packets+o.Packets, b.Bytes+o.Bytes, b.Flowcells+o.Flowcells
		}
	}
	return s
}

// BounceStats is what was sent to one bouncing switch, or by labels through it.
type BounceStats struct {
	Addr   netip.Addr `json:"address"`
	Uplink string     `json:"uplink,omitempty"` // by which, where the host has several
	Traffic
	Flowcells uint64 `json:"flowcells,omitempty"` // begun; only where paths are drawn
}

// Traffic is an amount of IP packets. Bytes are those of the packets as a device sends
// them: with outer headers, without Ethernet's.
type Traffic struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// bounceValue is struct traffic of bpf/spray.c.
type bounceValue struct {
	Traffic
	Flowcells uint64
	To        [16]byte
	Device    uint32
	Family    uint32 // of Next, AF_INET or AF_INET6; 0: none is known
	Next      [16]byte
}

// Stats returns the counters.
func (o *Spray) Stats() (s SprayStats, err error) {
	err = o.use(func() error {
		s, err = o.readStats()
		return err
	})
	return s, err
}

// counters lists the counters in the order of the enum in bpf/spray.c.
func (s *SprayStats) counters() []*uint64 {
	return []*uint64{&s.Encapsulated, &s.Passed, &s.Refused, &s.NoPath, &s.TooLong, &s.Malformed, &s.Flows, &s.Flowcells, &s.Chosen,
		&s.Seen, &s.Plain, &s.Unattended, &s.Broken, &s.Long.Sent, &s.Long.Bytes, &s.Long.Again, &s.Datagrams, &s.DatagramFlows, &s.Marked, &s.UnprovenMarks, &s.Peers,
		&s.Late.HandedOver, &s.Late.Returned, &s.Forwarded, &s.ForwardedLong}
}

func (o *Spray) readStats() (SprayStats, error) {
	var s SprayStats
	if err := kernel.SumCounters(o.counts, s.counters()...); err != nil {
		return s, err
	}
	var word pathWord
	var perCPU []bounceValue
	all := make(map[end]BounceStats)
	it := o.bounces.Iterate()
	for it.Next(&word, &perCPU) {
		at := end{o.switches[word], o.ends[word].from}
		b := all[at]
		for _, t := range perCPU {
			b.Packets += t.Packets
			b.Bytes += t.Bytes
			b.Flowcells += t.Flowcells
		}
		all[at] = b
	}
	if err := it.Err(); err != nil {
		return s, fmt.Errorf("counters of the bouncing switches: %w", err)
	}
	for at, b := range all {
		b.Addr = at.addr
		if at.from < len(o.uplinks) {
			b.Uplink = o.uplinks[at.from].Device
		}
		s.Bounces = append(s.Bounces, b)
	}
	slices.SortFunc(s.Bounces, func(a, b BounceStats) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Uplink, b.Uplink))
	})
	return s, nil
}
