// Package tcp is TCP as far as the papers' simulations need it: a Sender and a Receiver
// that a simulator drives. It is pure: no I/O, no clock, no goroutine.
//
// Congestion control is NewReno's (RFC 5681, 6582), loss recovery follows the receiver's
// SACK blocks (RFC 6675), timeouts are RFC 6298's; ECN (RFC 3168) and DCTCP (RFC 8257)
// are options, as are delayed acknowledgements. Unlike Linux it has no Nagle, no tail loss
// probes (a loss with fewer than DupThresh later packets waits for the
// timeout), no detection of lost retransmissions (they wait, too), no undo of needless
// reductions, and does not learn the degree of reordering.
package tcp

import (
	"fmt"
	"time"
)

const (
	maxWindow = 4 << 20
	maxRTO    = 60 * time.Second // RFC 6298 §2.5
)

// Config configures all connections. Zero values mean the defaults.
type Config struct {
	MSS         int // bytes of payload; default 1460, at least 64
	HeaderBytes int // of a data packet, and all of an acknowledgement; default 40
	// WindowBytes is the receiver's window, which bounds the bytes in flight; default 256
	// KB (DRB §5), at least a segment, at most 4 MB. Only whole segments of it are used.
	WindowBytes   int
	InitialWindow int // segments; default 10
	// RTOMin is the least retransmission timeout; default 10 ms. RTOInitial is the timeout
	// of a connection without a measured round trip; default RTOMin·2.
	RTOMin, RTOInitial time.Duration
	// DupThresh is how many later segments must arrive before one counts as lost;
	// default 3.
	DupThresh int
	// DCTCP reacts to marks in proportion (RFC 8257); ECN halves the window once a
	// round trip (RFC 3168).
	DCTCP, ECN bool
	// Subflows is how many subflows a connection has, which share its data and its window:
	// see Group; at most MaxSubflows. 0: it is plain TCP. The owner makes the subflows.
	Subflows int
	// Uncoupled has each subflow's window grow as that of a TCP would.
	Uncoupled bool
	// Handshake: a flow's first data leave a round trip after its start.
	Handshake bool
	// Timestamps: acknowledgements of what was sent again measure the round trip, too, and so end
	// a timeout's doubling (RFC 7323), as they do with Linux. Without it Karn's rule holds (RFC
	// 6298 §3): only data that were sent once do.
	Timestamps bool
	// AckEvery is how many whole segments in order an acknowledgement is of; 0 and 1: each has
	// its own, 2: as RFC 1122 §4.2.3.2 allows. At once are acknowledged: what is beyond a hole
	// or fills one, what bears a mark or was sent again, and a flow's end. No timer sends an
	// acknowledgement that waits for more: those of ns-3 and Windows take 200 ms, so a sender's
	// retransmission timeout, which is at most about as long here, comes first.
	AckEvery int
}

// WithDefaults returns c with its defaults filled in, as Start needs it. An error names the
// field that is wrong.
func (c Config) WithDefaults() (Config, error) {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.MSS, 1460)
	set(&c.HeaderBytes, 40)
	set(&c.WindowBytes, max(256<<10, c.MSS))
	set(&c.InitialWindow, 10)
	set(&c.DupThresh, 3)
	if c.RTOMin == 0 {
		c.RTOMin = 10 * time.Millisecond
	}
	if c.RTOInitial == 0 {
		c.RTOInitial = min(2*c.RTOMin, maxRTO)
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	switch {
	case c.MSS < 64 || c.MSS > 65535:
		return fmt.Errorf("tcp: MSS of %d bytes: give it 64 to 65535", c.MSS)
	case c.HeaderBytes < 1 || c.HeaderBytes > 65535:
		return fmt.Errorf("tcp: HeaderBytes of %d: give it 1 to 65535", c.HeaderBytes)
	case c.WindowBytes < c.MSS || c.WindowBytes > maxWindow:
		return fmt.Errorf("tcp: WindowBytes of %d: give it a segment (%d) to %d", c.WindowBytes, c.MSS, maxWindow)
	case c.InitialWindow < 1 || c.InitialWindow > maxWindow:
		return fmt.Errorf("tcp: InitialWindow of %d segments: give it at least 1, at most %d", c.InitialWindow, maxWindow)
	case c.DupThresh < 1 || c.DupThresh > maxWindow:
		return fmt.Errorf("tcp: DupThresh of %d: give it at least 1, at most %d", c.DupThresh, maxWindow)
	case c.RTOMin < 0 || c.RTOMin > maxRTO:
		return fmt.Errorf("tcp: RTOMin of %v: give it more than 0, at most %v", c.RTOMin, maxRTO)
	case c.RTOInitial < c.RTOMin || c.RTOInitial > maxRTO:
		return fmt.Errorf("tcp: RTOInitial of %v: give it RTOMin (%v) to %v", c.RTOInitial, c.RTOMin, maxRTO)
	case c.Subflows < 0 || c.Subflows > MaxSubflows:
		return fmt.Errorf("tcp: Subflows of %d: give it 1 to %d, or 0 for plain TCP", c.Subflows, MaxSubflows)
	case c.AckEvery < 0 || c.AckEvery > 2:
		return fmt.Errorf("tcp: AckEvery of %d: give it 0 to 2, more than RFC 1122 allows are not modelled", c.AckEvery)
	case c.AckEvery > 1 && c.Subflows > 0:
		return fmt.Errorf("tcp: AckEvery of %d with Subflows: a connection of several acknowledges each segment", c.AckEvery)
	case c.DCTCP && c.ECN:
		return fmt.Errorf("tcp: DCTCP and ECN: choose one")
	}
	return nil
}

// segments returns how many segments b bytes are; the last may be short.
func (c *Config) segments(b int64) int64 {
	if b == int64(c.MSS) { // nearly always; a division costs more than the rest
		return 1
	}
	return (b + int64(c.MSS) - 1) / int64(c.MSS)
}

// window returns the receiver's window in segments.
func (c *Config) window() int64 { return int64(c.WindowBytes / c.MSS) }
