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
	// traceDown is the lab's call that sets a port down; it takes as long as the
	// kernel does.
	traceDown = "port set down"
	// traceCarrier is an agent that has read of a port's carrier from the kernel.
	traceCarrier = "carrier read"
	// traceSent and traceHeard are an update that leaves a node and one that
	// arrives, with the kernel's timestamps.
	traceSent  = "update sent"
	traceHeard = "update heard"
	// traceDelivered is a host's SetTopology, from its call to its return.
	traceDelivered = "topology set"
	// traceLeft is the last packet that needed what had failed, as it left the uplink.
	traceLeft = "last left"
)

// traceEvent is something that happened after a failure.
type traceEvent struct {
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
	events []traceEvent
}

func (t *trace) add(e traceEvent) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
}

// take returns what happened between two moments, in order, and forgets all.
func (t *trace) take(from, to time.Time) []traceEvent {
	t.mu.Lock()
	all := t.events
	t.events = nil
	t.mu.Unlock()
	all = slices.DeleteFunc(all, func(e traceEvent) bool { return e.At.Before(from) || e.At.After(to) })
	slices.SortStableFunc(all, func(a, b traceEvent) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return all
}

// traceAfter is how long after the last packet events are of interest.
const traceAfter = 5 * time.Millisecond

// writeTrace writes a failure as text: a line for the failure, then one for each
// event with the milliseconds since just before it.
func writeTrace(w io.Writer, title string, since time.Time, events []traceEvent) error {
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
func (t *trace) lasts(top *topology.Topology, e *episode) {
	for src, s := range e.lastOf {
		t.add(traceEvent{At: s.at, Node: top.Node(src).Name, What: traceLeft, Of: fmt.Sprintf("to %s over %s", top.Node(s.Dst).Name, s.bounce)})
	}
}
