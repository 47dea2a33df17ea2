package uplink

import (
	"testing"
	"time"

	"weft/stack"
	"weft/topology"
)

// A Host that is told of another fabric goes on by another program at the uplink, which knows
// it.
func TestDevice_takesAnotherFabric(t *testing.T) {
	n := newNetwork(t)
	watch := func(c *stack.Config) { c.Liveness = &stack.Liveness{} }
	from, sender := n.open(t, near, "presto", watch)
	_, receiver := n.open(t, far, "presto", watch)
	if !from.Encapsulates() {
		t.Fatalf("fallback: %s", from.Offloads())
	}
	proved := func() {
		t.Helper()
		rack := sender.Topology().EdgeOf(far)
		for end := time.Now().Add(patience); sender.Carriage().Plain(rack); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(sender.Carriage().Why(rack))
			}
		}
	}
	proved()
	transferBetween(t, sender, receiver, 5<<20)
	other, err := topology.Parse("fat-tree:k=4,fabric-rate=1000,host-rate=1000,core-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	if _, same := n.topology.Diff(other); same {
		t.Fatal("it is no other fabric")
	}
	if err := sender.SetTopology(other); err != nil {
		t.Fatal(err)
	}
	if got := shares(t, from); len(got) > 0 {
		t.Errorf("the other program has sent %v already", got)
	}
	proved()
	transferBetween(t, sender, receiver, 20<<20)
	if got := shares(t, from); len(got) != 4 {
		t.Errorf("sent by %v, want four cores; %s", got, from.Offloads())
	}
	if s, err := from.Stats(); err != nil || s.Trouble != "" {
		t.Errorf("%v, %s", err, s.Trouble)
	}
	if err := sender.SetTopology(n.topology); err != nil {
		t.Error(err)
	}
}
