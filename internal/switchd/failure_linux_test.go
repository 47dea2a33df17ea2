package switchd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/eventlog"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// knows are those that a link's failure concerns: all switches and hosts, but for
// an edge link's, of which only its ends and the hosts under it learn.
func (l *testLab) wantLink(name string, live bool, who map[string]func() *topology.Topology) {
	l.t.Helper()
	id := l.link(name)
	for node, top := range who {
		l.within(fmt.Sprintf("%s has %s live: %v", node, name, live), func() bool { return top().Live(id) == live })
	}
}

// everybody returns what the agents and some listeners know.
func (l *testLab) everybody(hosts ...string) map[string]func() *topology.Topology {
	who := make(map[string]func() *topology.Topology)
	for id, a := range l.agents {
		who[l.top.Node(id).Name] = a.Topology
	}
	for _, h := range hosts {
		who[h] = l.listen(h).Topology
	}
	return who
}

func (l *testLab) only(who map[string]func() *topology.Topology, names ...string) map[string]func() *topology.Topology {
	some := make(map[string]func() *topology.Topology)
	for _, n := range names {
		some[n] = who[l.top.Node(l.id(n)).Name]
	}
	return some
}

func TestAgents_aFailureIsKnownAndHeals(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "a", "fat-tree:k=4")
	l.start(fast)
	l.adjacent()
	who := l.everybody("h0.0.2", "h3.1.3")
	for _, c := range []struct {
		link string
		mode lab.FailureMode
		know []string
	}{
		{"a0.2-3.0", lab.FailLoud, []string{"a0.2", "3.0", "a1.2", "a3.2", "e0.0", "e3.1", "h0.0.2", "h3.1.3"}},
		{"a3.2-3.1", lab.FailSilent, []string{"a3.2", "3.1", "a0.2", "e0.0", "e3.1", "h0.0.2", "h3.1.3"}},
		{"e0.0-a0.3", lab.FailLoud, []string{"e0.0", "a0.3", "h0.0.2", "h3.1.3"}},
		{"e3.1-a3.3", lab.FailSilent, []string{"e3.1", "a3.3", "h0.0.2", "h3.1.3"}},
	} {
		at, err := l.Fail(c.link, c.mode)
		if err != nil {
			t.Fatal(err)
		}
		l.wantLink(c.link, false, l.only(who, c.know...))
		var worst time.Duration
		for _, node := range c.know {
			when, ok := l.events.first(l.id(node), l.link(c.link), false, at)
			if !ok {
				t.Errorf("%s %v: %s was not told", c.link, c.mode, node)
			}
			worst = max(worst, when.Sub(at))
		}
		t.Logf("%s %v: all know after %v", c.link, c.mode, worst)
		if _, err := l.Heal(c.link); err != nil {
			t.Fatal(err)
		}
		l.wantLink(c.link, true, who)
	}
	// On a busy machine hellos are late, and a link that works is down for a moment.
	for name, top := range who {
		kerneltest.Within(t, kerneltest.Patience, "all links are up again for "+name, func() bool { return len(top().Down()) == 0 })
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A cable that is cut at a server is the edge switch's own knowledge.
func TestAgents_aServersLink(t *testing.T) {
	l := upLab(t, "b", "fat-tree:k=4", "h0.0.2", "h0.0.3", "e0.0", "a0.2", "a0.3")
	var log lockedBuffer
	c := fast
	c.Log = eventlog.Lines(&log)
	l.start(c)
	l.within("adjacency", func() bool {
		return l.agents[l.id("a0.2")].Status().Neighbours[0].Hears
	})
	link := l.link("h0.0.2-e0.0")
	err := l.Do(l.id("h0.0.2"), func() error { return setPort("p0", false) })
	if err != nil {
		t.Fatal(err)
	}
	edge, agg := l.agents[l.id("e0.0")], l.agents[l.id("a0.2")]
	l.within("the edge switch sees it", func() bool { return !edge.Topology().Live(link) })
	if err := l.Do(l.id("h0.0.2"), func() error { return setPort("p0", true) }); err != nil {
		t.Fatal(err)
	}
	l.within("it is back", func() bool { return edge.Topology().Live(link) })
	l.within("e0.0's log says both", func() bool {
		text := log.String()
		down := strings.Index(text, "port p0 to h0.0.2 is down: no carrier\n")
		return down >= 0 && strings.Contains(text[down:], "port p0 to h0.0.2 is up: ")
	})
	if down := agg.Topology().Down(); slices.Contains(down, link) {
		t.Error("another switch was told")
	}
	// What is not built is down.
	if s := agg.Status(); !slices.Contains(s.Down, "e0.1-a0.2") || !slices.Contains(s.Down, "a0.2-c1.1") {
		t.Errorf("a0.2 takes ports without devices for live: %v", s.Down)
	}
}
