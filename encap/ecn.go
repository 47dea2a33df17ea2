package encap

// ECN is the two-bit congestion field of an IP header (RFC 3168 §5).
type ECN uint8

// The codepoints.
const (
	NotECT ECN = iota // the transport understands no marks
	ECT1
	ECT0
	CE // congestion experienced
)

const ecnMask = 3

func (e ECN) String() string {
	return [...]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}[e&ecnMask]
}

// encapsulateECN returns the outer field for an inner one: a copy, which is
// RFC 6040 §4.1's normal mode.
func encapsulateECN(inner ECN) (outer ECN) { return inner }

// decapsulated is RFC 6040 §4.2, Fig. 4, by inner and outer field. The one
// combination that drops the packet stands as CE: see decapsulateECN.
var decapsulated = [4][4]ECN{
	NotECT: {NotECT: NotECT, ECT0: NotECT, ECT1: NotECT, CE: CE},
	ECT0:   {NotECT: ECT0, ECT0: ECT0, ECT1: ECT1, CE: CE},
	ECT1:   {NotECT: ECT1, ECT0: ECT1, ECT1: ECT1, CE: CE},
	CE:     {NotECT: CE, ECT0: CE, ECT1: CE, CE: CE},
}

// decapsulateECN returns the field of the packet that leaves the tunnel (RFC 6040 §4.2).
// ok is false for a mark on a packet whose transport does not understand marks. That
// packet must be dropped, as a switch without ECN would have dropped it.
func decapsulateECN(inner, outer ECN) (out ECN, ok bool) {
	out = decapsulated[inner&ecnMask][outer&ecnMask]
	return out, out != CE || inner != NotECT
}
