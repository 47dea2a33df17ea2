package fabric

// Counters count a bouncing switch's packets by outcome, since the decapsulator
// was attached. A super-segment counts as its segments if it was decapsulated,
// and as one packet if it was dropped.
type Counters struct {
	Decapsulated uint64 `json:"decapsulated"`
	Spoofed      uint64 `json:"spoofed"`   // dropped: inner source is not the outer one
	Nested       uint64 `json:"nested"`    // dropped: IP-in-IP in IP-in-IP
	ECN          uint64 `json:"ecn"`       // dropped: congestion marked, inner not capable (RFC 6040)
	Malformed    uint64 `json:"malformed"` // dropped: options, fragment, truncated, bad checksum, not of the outer header's family
}

// EdgeCounters count packets whose labels begin or end at a switch by outcome, since its
// program was attached. A super-segment counts as its segments if it passes, and as one
// packet if it is dropped.
type EdgeCounters struct {
	Decapsulated uint64 `json:"decapsulated"` // left to the kernel for that
	Forged       uint64 `json:"forged"`       // dropped: not the host's own, or the inner source is not the outer one
	Nested       uint64 `json:"nested"`       // dropped: IP-in-IP inside
	ECN          uint64 `json:"ecn"`          // dropped: congestion marked, inner not capable (RFC 6040)
	Malformed    uint64 `json:"malformed"`    // dropped: no whole IPv4 header inside
}

// LabelCounters count a switch's packets with labels in IPv6 by outcome, since
// its routes were made. A super-segment counts as one.
type LabelCounters struct {
	Popped       uint64 `json:"popped"`       // sent out of the port that the label said
	Decapsulated uint64 `json:"decapsulated"` // at the end of the labels
	Ended        uint64 `json:"ended"`        // dropped: no label behind that of a port
	Malformed    uint64 `json:"malformed"`    // dropped: to be decapsulated, but no IPv4 packet inside
	Unknown      uint64 `json:"unknown"`      // dropped: no port has the label. Any IPv6 packet without a route counts
	Expired      uint64 `json:"expired"`      // dropped: hop limit exceeded, or another error in the IPv6 header
}

// sums are in the order of the enum in bpf/decap.c.
func (c *Counters) sums() []*uint64 {
	return []*uint64{&c.Decapsulated, &c.Spoofed, &c.Nested, &c.ECN, &c.Malformed}
}

// sums are in the order of the enum in bpf/edge.c.
func (c *EdgeCounters) sums() []*uint64 {
	return []*uint64{&c.Decapsulated, &c.Forged, &c.Nested, &c.ECN, &c.Malformed}
}
