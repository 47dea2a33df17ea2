package failover

import (
	"strings"
	"testing"
	"time"

	"weft/topology"
)

func TestTrace_writesWhatHappenedInOrder(t *testing.T) {
	var tr trace
	since := time.Unix(100, 0)
	at := func(us int) time.Time { return since.Add(time.Duration(us) * time.Microsecond) }
	tr.add(traceEvent{At: at(2500), Node: "h0.0.2", What: traceLeft, Of: "to h1.0.2"})
	tr.add(traceEvent{At: at(10), Took: 300 * time.Microsecond, Node: "lab", What: traceDown, Of: "a0.2-c1.1"})
	tr.add(traceEvent{At: at(-5), Node: "c1.1", What: traceSent}) // before
	tr.add(traceEvent{At: at(9999), Node: "c1.1", What: traceSent})
	var b strings.Builder
	if err := writeTrace(&b, "a0.2-c1.1", since, tr.take(since, at(5000))); err != nil {
		t.Fatal(err)
	}
	want := "a0.2-c1.1\n    0.010 +0.300\tlab\tport set down\ta0.2-c1.1\n    2.500\th0.0.2\tlast left\tto h1.0.2\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if left := tr.take(since, at(99999)); len(left) != 0 {
		t.Errorf("%d events are there twice", len(left))
	}
	(*trace)(nil).add(traceEvent{})
}

// A node's links fall one after the other: what needs a link that is still there
// is not in the hole, and each packet's time counts from its own link's fall.
func TestEpisode_countsFromTheFallOfThePathsOwnLink(t *testing.T) {
	whole := parse(t, "fat-tree:k=4")
	down, _ := linksOf(whole, "c1.1")
	h := newHole(whole, []pair{{0, 5}, {8, 13}}, down...)
	core := whole.Node(whole.Link(down[0]).B).Addr
	since := time.Unix(100, 0)
	at := func(ms int) time.Time { return since.Add(time.Duration(ms) * time.Millisecond) }
	falls := make(map[topology.LinkID]fall)
	for pod, l := range down { // pods 0 and 1 at once, 2 and 3 much later
		from := at(40 * (pod / 2))
		falls[l] = fall{from, from.Add(3 * time.Millisecond)}
	}
	e := newEpisode(h, since, at(90), falls)
	e.see(sighting{path{pair{0, 5}, core}, at(4)})
	e.see(sighting{path{pair{8, 13}, core}, at(39)}) // its links are there
	e.see(sighting{path{pair{8, 13}, core}, at(45)})
	if e.packets != 2 || e.late != 5*time.Millisecond || e.after != 2*time.Millisecond || !e.last.Equal(at(45)) {
		t.Errorf("%d packets, late %v, %v after the fall, last %v", e.packets, e.late, e.after, e.last)
	}
}
