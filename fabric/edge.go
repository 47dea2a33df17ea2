package fabric

// EdgeCounters are an edge switch's packets with labels by what became of them in
// its program, since that was attached. A super-segment counts as its segments
// where it is let through, as one where it is dropped.
type EdgeCounters struct {
	Decapsulated uint64 `json:"decapsulated"` // left to the kernel for that
	Forged       uint64 `json:"forged"`       // dropped: not the host's own, or the inner source is not the outer one
	Nested       uint64 `json:"nested"`       // dropped: IP-in-IP inside
	ECN          uint64 `json:"ecn"`          // dropped: congestion marked, inner not capable (RFC 6040)
	Malformed    uint64 `json:"malformed"`    // dropped: no whole IPv4 header inside
}
