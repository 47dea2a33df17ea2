package kernel

import "net/netip"

// Connection is one of the kernel's TCP connections.
type Connection struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	Host   string         `json:"host,omitempty"` // the remote end in the topology of the weft host
	Rack   string         `json:"rack,omitempty"`

	Sent      uint64  `json:"sent_bytes"` // payload, acknowledged
	Received  uint64  `json:"received_bytes"`
	Resent    uint32  `json:"resent_segments"`
	Needless  uint32  `json:"needless_segments"` // of the resent, those that the peer had (DSACK)
	Segments  uint32  `json:"segments"`          // with payload, sent
	OutOf     uint32  `json:"out_of_order_segments"`
	RTT       float64 `json:"rtt_ms"`
	LeastRTT  float64 `json:"least_rtt_ms"`
	Delivered float64 `json:"delivery_mbit"` // rate of the latest delivery
	Timeouts  uint8   `json:"timeouts"`      // in a row, now
}
