package failover

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/topology"
)

// The events of a trace, in the order in which they follow each other.
const (
	// TraceDown is the lab's call that sets a port down; it takes as long as the
	// kernel does.
	TraceDown = "port set down"
	// TraceCarrier is an agent that has read of a port's carrier from the kernel.
	TraceCarrier = "carrier read"
	// TraceSent and TraceHeard are an update that leaves a node and one that
	// arrives, with the kernel's timestamps.
	TraceSent  = "update sent"
	TraceHeard = "update heard"
	// TraceDelivered is a host's SetTopology, from its call to its return.
	TraceDelivered = "topology set"
	// TraceHanded and TraceLeft are the last packet that needed what had failed: as
	// its stack handed it down, and as it left the uplink.
	TraceHanded = "last handed"
	TraceLeft   = "last left"
)

// TraceEvent is something that happened after a failure.
type TraceEvent struct {
	At   time.Time
	Took time.Duration // 0: a moment
	Node string
	What string
	Of   string // link, port or switches, by the event
}

// trace collects what happens from a failure to its end. It is safe for
// concurrent use; a nil trace collects nothing.
type trace struct {
	mu     sync.Mutex
	events []TraceEvent
}

func (t *trace) add(e TraceEvent) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
}

// take returns what happened between two moments, in order, and forgets all.
func (t *trace) take(from, to time.Time) []TraceEvent {
	t.mu.Lock()
	all := t.events
	t.events = nil
	t.mu.Unlock()
	all = slices.DeleteFunc(all, func(e TraceEvent) bool { return e.At.Before(from) || e.At.After(to) })
	slices.SortStableFunc(all, func(a, b TraceEvent) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return all
}

// traceAfter is how long after the last packet events are of interest.
const traceAfter = 5 * time.Millisecond

// writeTrace writes a failure as text: a line for the failure, then one for each
// event with the milliseconds since just before it.
func writeTrace(w io.Writer, title string, since time.Time, events []TraceEvent) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", title)
	for _, e := range events {
		fmt.Fprintf(&b, "%9.3f", milliseconds(e.At.Sub(since)))
		if e.Took > 0 {
			fmt.Fprintf(&b, " +%.3f", milliseconds(e.Took))
		}
		fmt.Fprintf(&b, "\t%s\t%s\t%s\n", e.Node, e.What, e.Of)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lasts adds when each host's last packet went into the hole.
func (t *trace) lasts(top *topology.Topology, what string, e *episode) {
	for src, s := range e.lastOf {
		t.add(TraceEvent{At: s.at, Node: top.Node(src).Name, What: what, Of: fmt.Sprintf("to %s over %s", top.Node(s.Dst).Name, s.bounce)})
	}
}
