package live

import "time"

// Bounds of a Sample and a Frame; what is above them is left out and counted (Frame.More).
const (
	MaxConns    = 256
	MaxWays     = 2048
	MaxSuspects = 64
	MaxFailures = 256
	MaxHosts    = 1024
	MaxEvents   = 64
	maxPlaces   = 64
	maxText     = 300 // bytes of what others say, such as why a path is bad
)

// Sample is what a source has counted at one moment. Counters count from any beginning on.
type Sample struct {
	At    time.Time
	Links []LinkSample // of Fabric.Links, in their order
	Conns []ConnSample // the most important first
	Ways  []WaySample

	Hosts    []Host
	Suspects []Suspect
	Failures []Failure
	// Trouble is what could not be asked, and why; "" if all could.
	Trouble string
}

// LinkSample is a link at one moment.
type LinkSample struct {
	Up, Down Counters // what its lower, and its upper end has sent
	State    State
}

// State is whether a link works.
type State uint8

// The states, the worst last.
const (
	Unknown State = iota
	Working
	Suspected // a host that is asked does not trust it
	Silent    // it has been made to drop what it carries, though both ends see it up
	Broken    // it is down
)

var stateNames = [...]string{"unknown", "up", "suspected", "silent", "down"}

func (s State) String() string {
	if int(s) >= len(stateNames) {
		return stateNames[0]
	}
	return stateNames[s]
}

// MarshalText makes a State its name in JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a State's name; one that is not known is Unknown.
func (s *State) UnmarshalText(text []byte) error {
	*s = Unknown
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
		}
	}
	return nil
}

// Counters are those of one direction of a link.
type Counters struct {
	At      time.Time // when they were read; zero: with the sample
	Known   bool
	Bytes   uint64
	Packets uint64 // may be modulo 2³²
	Drops   uint64 // packets; may be modulo 2³²
	Queue   uint64 // bytes that wait now
}

// ConnSample is a connection at one moment. From, Local and Remote tell connections apart.
type ConnSample struct {
	From          string // the node that has been asked
	To            string // the node at the other end, or ""
	Local, Remote string
	State         string
	Sent          uint64 // bytes
	Received      uint64
	Waiting       uint64
	Segments      uint64 // sent; modulo 2³²
	Resent        uint64 // segments; modulo 2³²
	OutOfOrder    uint64 // segments received; modulo 2³²
	RTT           float64
}

// WaySample is what a host has sent by a bouncing switch. Host, Bounce and Uplink tell ways apart.
type WaySample struct {
	Host   string
	Bounce string
	Uplink string // where the host has several
	State  string // as its probes say; "": it sends none
	Why    string
	Bytes  uint64
	RTT50  float64 // ms; 0: not known
	RTT99  float64
	Loss   float64 // part of the packets of the last 10 to 20 s
}

// Host is how a host with a daemon does.
type Host struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Why     string `json:"why"`
	About   string `json:"about"`
}

// Suspect is a place that a host blames for losses, or several of which one is at fault.
type Suspect struct {
	Host   string   `json:"host"`
	Places []string `json:"places"`
	Why    string   `json:"why,omitempty"`
	Loss   float64  `json:"loss"` // part of the packets that it loses
	Lost   int      `json:"lost"`
}

// Failure is what a Breaker has made fail.
type Failure struct {
	Target string `json:"target"` // a link's or a node's name
	Mode   string `json:"mode"`
}
