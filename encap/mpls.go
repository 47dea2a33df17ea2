package encap

// The label of port 0. The labels before it mean something else (RFC 3032 §2.1).
const mplsFirst = 16

// MPLSLabel returns the label of an output port.
func MPLSLabel(port int) uint32 { return mplsFirst + uint32(port) }
