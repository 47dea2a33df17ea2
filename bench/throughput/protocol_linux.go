package throughput

import "weft/topology"

// A Worker has its job as an argument, reads commands, a line each, and answers
// the job and every command with a report.
type job struct {
	Case     string          `json:"case"`
	Topology string          `json:"topology"`
	Self     topology.NodeID `json:"self"`
	Peer     topology.NodeID `json:"peer"`
	// Target is the receiver's address and port; the receiver itself has none.
	Target string `json:"target,omitempty"`
	// Connections carry the bytes. Respond has the receiver answer requests as well, at
	// respondPort.
	Connections int  `json:"connections"`
	Respond     bool `json:"respond,omitempty"`
	// Carry makes the Worker a helper: no end of the connection, but what
	// carries it at that host.
	Carry bool `json:"carry,omitempty"`
	// Scratch is a directory for files; the parent removes it.
	Scratch string `json:"scratch"`
	// Profile is the file for a profile of the processor time between two
	// counts, "" for none.
	Profile string `json:"profile,omitempty"`
}

// The commands.
const (
	cmdStart  = "start"  // sender: begin to write
	cmdCount  = "count"  // tell the counters; between the first two a profile is taken
	cmdFinish = "finish" // sender: stop and close; receiver: wait for the end of the stream
	cmdPlain  = "plain"  // tell whether, and how often, packets to the peer go plain
	// Sender: measure requests of so many bytes, or connections opened anew, for so long. The
	// command has these behind it, as in "latency 64 3s" and "anew 3s".
	cmdLatency = "latency"
	cmdAnew    = "anew"
)

// report is an answer: the counters as they stand. A helper that is no Worker
// tells Mallocs, CPUNanos and Children only.
type report struct {
	Address     string   `json:"address,omitempty"` // of the receiver's listener
	Bytes       int64    `json:"bytes"`             // of payload, so far
	Nanos       int64    `json:"ns"`                // monotonic, the same clock for all processes
	Retransmits uint64   `json:"retransmits"`       // by the host's TCP
	Mallocs     uint64   `json:"mallocs"`
	CPUNanos    int64    `json:"cpu_ns"`             // user and system time of the process
	Children    []int    `json:"children,omitempty"` // processes of its own, whose time is in CPUNanos
	Plain       bool     `json:"plain,omitempty"`    // the carrier is not in use to the peer's rack; answer to cmdPlain
	GivenUp     uint64   `json:"given_up,omitempty"` // times that a carrier went out of use; answer to cmdPlain
	Latency     *Latency `json:"latency,omitempty"`  // answer to cmdLatency
	Anew        float64  `json:"anew,omitempty"`     // connections a second; answer to cmdAnew
	Error       string   `json:"error,omitempty"`
}
