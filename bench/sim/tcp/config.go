// Package tcp is TCP as far as the papers' simulations need it.
package tcp

import "time"

// Config is of all connections. Zero values mean the defaults.
type Config struct {
	MSS         int // bytes of payload; default 1460
	HeaderBytes int // of a data packet, and all of an acknowledgement; default 40
	// WindowBytes is the receiver's window, which bounds what is under way; default
	// 256 KB (DRB §5), at most 4 MB.
	WindowBytes   int
	InitialWindow int // segments; default 10
	// RTOMin bounds the retransmission timeout from below; default 10 ms. RTOInitial
	// is that of a connection without a measured round trip; default RTOMin·2.
	RTOMin, RTOInitial time.Duration
	DupThresh          int // default 3
	// DCTCP reacts to marks in proportion (RFC 8257); ECN halves the window once a
	// round trip (RFC 3168).
	DCTCP, ECN bool
	// Handshake: a flow's first data leave a round trip after its start.
	Handshake bool
}
