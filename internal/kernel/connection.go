package kernel

import "net/netip"

// Connection is one of the kernel's TCP connections.
type Connection struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	State  string         `json:"state"` // one of ConnectionStates

	Sent      uint64  `json:"sent_bytes"` // payload, acknowledged
	Received  uint64  `json:"received_bytes"`
	Waiting   uint32  `json:"waiting_bytes"` // written, and not acknowledged: SYN and FIN count as a byte
	Resent    uint32  `json:"resent_segments"`
	Needless  uint32  `json:"needless_segments"` // of the resent, those that the peer had (DSACK)
	Segments  uint32  `json:"segments"`          // with payload, sent
	OutOf     uint32  `json:"out_of_order_segments"`
	RTT       float64 `json:"rtt_ms"`
	LeastRTT  float64 `json:"least_rtt_ms"`
	Delivered float64 `json:"delivery_mbit"` // rate of the latest delivery
	Timeouts  uint8   `json:"timeouts"`      // in a row, now
}

// StateEstablished is the State of connections that are open.
const StateEstablished = "established"

// ConnectionStates are the values of Connection.State: RFC 9293's names, as `ss state` has them. Those
// in which nothing waits for an answer, such as that of a listener, are not among them.
func ConnectionStates() []string {
	return []string{StateEstablished, "syn-sent", "fin-wait-1", "close-wait", "last-ack", "closing"}
}
