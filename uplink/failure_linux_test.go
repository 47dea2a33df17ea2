package uplink

import (
	"slices"
	"testing"
	"time"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/stack"
	"weft/topology"
)

// patience is how long a test waits for what takes a tenth of a second, or a few
// where something is held back after it was healed.
const patience = time.Minute

// uses reports whether a Host of one host sends to another over a core.
func uses(h *stack.Host, from, to, core topology.NodeID) bool {
	set := h.Topology().Paths(from, to)
	return slices.ContainsFunc(set.Live, func(n int) bool { return set.Bounce(n) == core })
}

// A link below a core swallows everything and no switch says so. The Hosts at both
// ends find out and the uplinks' programs with them: nothing goes over the core any
// more, whole super-segments over the others, until the link is healed.
func TestDevice_quitsASilentlyDeadLinkWithItsHost(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t)
	watch := func(c *stack.Config) { c.Liveness = &stack.Liveness{} }
	from, sender := n.open(t, near, "presto", watch)
	_, receiver := n.open(t, far, "presto", watch)
	if !from.Encapsulates() {
		t.Fatalf("fallback: %s", from.Offloads())
	}
	core, _ := n.topology.Lookup("3.0")
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); {
			if time.Now().After(end) {
				t.Fatalf("not after %v: %s", patience, what)
			}
			transferBetween(t, sender, receiver, 5<<20)
		}
	}
	used := func() bool {
		before := shares(t, from)
		transferBetween(t, sender, receiver, 5<<20)
		return shares(t, from)[core.Addr] > before[core.Addr]
	}
	until("the core is used", used)

	const link = "a0.2-c1.1"
	if _, err := n.Fail(link, lab.FailSilent); err != nil {
		t.Fatal(err)
	}
	defer n.Heal() // of what a failed test leaves to the next
	until("the sender quits the core", func() bool { return !uses(sender, near, far, core.ID) })
	until("the receiver quits the core", func() bool { return !uses(receiver, far, near, core.ID) })
	until("the sender's uplink quits the core", func() bool { return !used() })

	if _, err := n.Heal(link); err != nil {
		t.Fatal(err)
	}
	until("the sender uses the core again", func() bool { return uses(sender, near, far, core.ID) })
	until("its uplink does", used)
	if s := sender.Stats().Liveness; s.Untold != 0 {
		t.Errorf("%+v", s)
	}
}
