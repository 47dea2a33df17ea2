package sim

// event is something that happens at a time. Of two events at the same time, the one that
// was pushed first comes first.
type event struct {
	at   int64  // ps
	what uint32 // a packet, a flow, ...
	// next is, of a packet at the end of a link, the port that it enters, so that
	// memory can be asked for what is known of both at once; else a kind.
	next uint32
}

// Kinds of events. Ports have lower numbers.
const (
	arrived   = maxPorts + iota // a packet, where it was to go
	undecided                   // a packet, at a switch that will choose the port
	timer                       // what: flow
	nextFlow                    // the Workload's next begins
	laterFlow                   // what: index of later
	expiry                      // of what resequencers hold
	emission                    // what: host that sends open loop
	sampling                    // hosts' probes are due
	failure                     // what: index of Config.Failures
	news                        // likewise; hosts and switches know of it
	warm                        // measuring begins
	look                        // Config.OnSample
	end

	maxPorts = 1 << 24 // topology has fewer
)
