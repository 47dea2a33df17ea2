package sim

// event is something that happens at a time. Of two events at the same time, the one that
// was pushed first comes first.
//
// Of a packet at the end of a link it has all that the next ports need to know, so that only
// the ends of a way, and switches that choose or measure, touch the packet itself.
type event struct {
	at   int64  // ps
	what uint32 // a packet, a flow, ...
	load uint32 // a kind and, of a packet, its flags, how many ports it has passed, and its length
	way  way    // the ports that a packet has yet to enter; then what its kind says
}

// Kinds of events.
const (
	arrived   = iota // a packet, where it was to go
	undecided        // a packet, at a switch that will choose the port
	timer            // what: flow
	nextFlow         // the Workload's next begins
	laterFlow        // what: index of later
	expiry           // of what resequencers hold
	emission         // what: host that sends open loop
	sampling         // hosts' probes are due
	failure          // what: index of Config.Failures
	news             // likewise; hosts and switches know of it
	warm             // measuring begins
	look             // Config.OnSample
	end

	kinds = 1<<4 - 1
)

// Flags in a load. A packet keeps those it arrives with.
const (
	capable = 1 << (4 + iota) // of congestion marks
	marked
	gone // with a link that has failed: it will not arrive

	passedShift = 7
	onePassed   = 1 << passedShift
	bytesShift  = 10
)

// loadOf is the load of a packet at its host.
func loadOf(bytes int32, flags uint32) uint32 { return uint32(bytes)<<bytesShift | flags }

// passed is how many ports a packet has passed, its host's own included.
func passed(load uint32) int { return int(load >> passedShift & 7) }

// isPacket reports whether an event is one of a packet.
func (e *event) isPacket() bool { return e.way != way{} || e.load&kinds <= undecided }

// way is up to five ports, the next one lowest: 24 bits each, 1 more than the number.
type way struct{ low, high uint64 }

const (
	wayBits  = 24
	maxPorts = 1<<wayBits - 1 // topology has fewer
)

// wayBy is the way through given ports.
func wayBy(ports []int32) (w way) {
	for i := len(ports) - 1; i >= 0; i-- {
		w.high = w.high<<wayBits | w.low>>(64-wayBits)
		w.low = w.low<<wayBits | uint64(ports[i]+1)
	}
	return w
}

// next is the next port, below 0 if there is none.
func (w way) next() int32 { return int32(w.low&maxPorts) - 1 }

// rest is the way behind the next port.
func (w way) rest() way {
	return way{w.low>>wayBits | w.high<<(64-wayBits), w.high >> wayBits}
}
