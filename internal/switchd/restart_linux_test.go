package switchd

import (
	"testing"

	"weft/lab"
)

// Who leaves in order takes nothing with him; who crashes is found out, and comes
// back.
func TestAgent_restart(t *testing.T) {
	l := upLab(t, "t", "fat-tree:k=4", "h0.0.2", "e0.0", "e0.1", "a0.2", "a0.3", "c1.1", "c1.2", "c2.1")
	l.start(fast)
	l.adjacent()
	host, edge := l.listen("h0.0.2"), l.agents[l.id("e0.0")]
	agg, link := l.id("a0.2"), l.link("e0.0-a0.2")
	const old = "a0.2-c1.1"
	if _, err := l.Fail(old, lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	l.within("the failure is known", func() bool { return !host.Topology().Live(l.link(old)) && !edge.Topology().Live(l.link(old)) })
	changes := edge.Status().Changes
	if err := l.agents[agg].Close(); err != nil {
		t.Fatal(err)
	}
	l.within("it has left", func() bool { return edge.Status().Neighbours[2].Why == "has left in order: judged by its carrier" })
	l.startOne(agg)
	l.within("it is back", func() bool { return edge.Status().Neighbours[2].Hears })
	if s := edge.Status(); s.Changes != changes {
		t.Errorf("leaving and coming back changed the topology %d times; %v are down", s.Changes-changes, s.Down)
	}
	// A crash.
	if err := l.agents[agg].Kill(); err != nil {
		t.Fatal(err)
	}
	l.within("its links are dead", func() bool { return !edge.Topology().Live(link) && !host.Topology().Live(link) })
	l.startOne(agg)
	l.within("its links are back", func() bool { return edge.Topology().Live(link) && host.Topology().Live(link) })
	if _, err := l.Fail("a0.2-c1.2", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	l.within("it is believed", func() bool { return !host.Topology().Live(l.link("a0.2-c1.2")) })
	if host.Topology().Live(l.link(old)) {
		t.Error("the failure of before was forgotten")
	}
}
