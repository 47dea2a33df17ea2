package live

import "time"

// Frame is how a fabric does at one moment: what is so now, and rates since the frame before.
type Frame struct {
	Seq     uint64    `json:"seq"` // of a source's frames: 1, 2, 3
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"` // since the frame before; 0: there is none, and no rate is known
	Fabric  int       `json:"fabric"`  // Fabric.Version

	Links []LinkFrame `json:"links"` // in the order of Fabric.Links
	Conns []Conn      `json:"conns"`
	Ways  []Way       `json:"ways"`

	Hosts    []Host    `json:"hosts"`
	Suspects []Suspect `json:"suspects"`
	Failures []Failure `json:"failures"`
	Events   []Event   `json:"events"` // since the frame before
	Total    Total     `json:"total"`
	Trouble  string    `json:"trouble,omitempty"`
	More     int       `json:"more,omitempty"` // connections, ways and so on above the bounds
}

// LinkFrame is a link.
type LinkFrame struct {
	State State `json:"state"`
	Up    Flow  `json:"up"`   // from the lower end to the upper one
	Down  Flow  `json:"down"` // from the upper end to the lower one
	// Bad counts a bundle's members that are down, silent or suspected.
	Bad int `json:"bad,omitempty"`
}

// Flow is one direction of a link.
type Flow struct {
	Rate  float64 `json:"bit_s"`
	Use   float64 `json:"use"`         // part of the link's rate; 0 where that is not known
	Queue uint64  `json:"queue_bytes"` // now
	Drops uint64  `json:"drops"`       // packets, since the frame before
	Loss  float64 `json:"loss"`        // part of the packets
}

// Busier returns the direction with the higher rate.
func (l *LinkFrame) Busier() *Flow {
	if l.Down.Rate > l.Up.Rate {
		return &l.Down
	}
	return &l.Up
}

// Conn is a connection. Rates are of payload.
type Conn struct {
	From       string  `json:"from"`
	To         string  `json:"to,omitempty"`
	Local      string  `json:"local"`
	Remote     string  `json:"remote"`
	State      string  `json:"state"`
	Sends      float64 `json:"sends_bit_s"` // acknowledged
	Gets       float64 `json:"gets_bit_s"`
	Sent       uint64  `json:"sent_bytes"`
	Received   uint64  `json:"received_bytes"`
	Waiting    uint64  `json:"waiting_bytes"`
	Resent     uint64  `json:"resent"`       // segments, since the frame before
	OutOfOrder uint64  `json:"out_of_order"` // segments received, since the frame before
	AllResent  uint64  `json:"all_resent"`   // segments, ever
	RTT        float64 `json:"rtt_ms"`
}

// Key tells connections apart.
func (c *Conn) Key() string { return c.From + " " + c.Local + " " + c.Remote }

// Way is what a host sends by a bouncing switch.
type Way struct {
	Host   string  `json:"host"`
	Bounce string  `json:"bounce"`
	Uplink string  `json:"uplink,omitempty"`
	State  string  `json:"state,omitempty"`
	Why    string  `json:"why,omitempty"`
	Rate   float64 `json:"bit_s"`
	Share  float64 `json:"share"` // of the host's bytes that it sends by ways
	RTT50  float64 `json:"rtt_p50_ms,omitempty"`
	RTT99  float64 `json:"rtt_p99_ms,omitempty"`
	Loss   float64 `json:"loss"`
}

// Event is something that happened between two frames.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // one of the Event constants
	What string    `json:"what"` // a link's or a node's name
	Text string    `json:"text"` // a sentence
}

// The kinds of events.
const (
	EventDown    = "down"    // a link is down
	EventUp      = "up"      // a link is up again
	EventFail    = "fail"    // something was made to fail
	EventHeal    = "heal"    // something was healed
	EventSuspect = "suspect" // a host suspects a place
	EventTrusted = "trusted" // no host suspects it any more
	EventDrops   = "drops"   // a queue that was not full overflows
	EventVerdict = "verdict" // a host's verdict is another one
	EventMark    = "mark"    // what a source says, such as the beginning of a run
	EventTrouble = "trouble" // something cannot be asked, or can be again
)

// Total sums up a frame.
type Total struct {
	// Delivered is what arrives at hosts by their links; where one host is asked, what it sends
	// and gets. bit/s.
	Delivered float64 `json:"delivered_bit_s"`
	Drops     uint64  `json:"drops"`       // packets, since the frame before
	Queue     uint64  `json:"queue_bytes"` // in the longest queue
	Use       float64 `json:"use"`         // of the busiest direction
	Down      int     `json:"down"`        // links that are down or silent
	Conns     int     `json:"conns"`
}

// Summary is what a time line shows of a Frame.
type Summary struct {
	Seq    uint64    `json:"seq"`
	At     time.Time `json:"at"`
	Total  Total     `json:"total"`
	Events []Event   `json:"events"`
}

// Summary returns the frame's.
func (f *Frame) Summary() Summary { return Summary{f.Seq, f.At, f.Total, f.Events} }
