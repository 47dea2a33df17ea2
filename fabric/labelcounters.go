package fabric

// LabelCounters are a switch's packets with labels in IPv6 by what became of
// them, since its routes were made. A super-segment counts as one.
type LabelCounters struct {
	Popped       uint64 `json:"popped"`       // sent out of the port that the label said
	Decapsulated uint64 `json:"decapsulated"` // by an edge switch
	Ended        uint64 `json:"ended"`        // dropped: no label behind that of a port
	Malformed    uint64 `json:"malformed"`    // dropped: to be decapsulated, but no IPv4 packet inside
	Unknown      uint64 `json:"unknown"`      // dropped: no port has the label. Any IPv6 packet without a route counts
	Expired      uint64 `json:"expired"`      // dropped: hop limit exceeded, or another error in the IPv6 header
}
