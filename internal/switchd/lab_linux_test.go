package switchd

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"weft/fabric"
	"weft/lab"
	"weft/topology"
	"weft/topoupdate"
	"weft/topoupdate/listen"
)

// testLab is a fabric with an agent on every switch, all in this process.
type testLab struct {
	*lab.Lab
	t      testing.TB
	top    *topology.Topology
	config Config // of all agents, but for Self
	agents map[topology.NodeID]*Agent
	events events
}

// events are the snapshots that anybody had, with their times.
type events struct {
	sync.Mutex
	list []snapshot
}

type snapshot struct {
	node topology.NodeID
	at   time.Time
	t    *topology.Topology
}

func (e *events) add(node topology.NodeID, t *topology.Topology) {
	e.Lock()
	defer e.Unlock()
	e.list = append(e.list, snapshot{node, time.Now(), t})
}

// first returns when a node first had a link down, or up, after a time.
func (e *events) first(node topology.NodeID, l topology.LinkID, live bool, after time.Time) (time.Time, bool) {
	e.Lock()
	defer e.Unlock()
	for _, s := range e.list {
		if s.node == node && s.at.After(after) && s.t.Live(l) == live {
			return s.at, true
		}
	}
	return time.Time{}, false
}

// upLab builds a lab of some nodes, of all if there are none.
func upLab(t testing.TB, letter, spec string, only ...string) *testLab {
	t.Helper()
	return upBalanced(t, letter, spec, "", only...)
}

// upBalanced is upLab with switches that balance.
func upBalanced(t testing.TB, letter, spec, rule string, only ...string) *testLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab in network namespaces")
	}
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	c := lab.Config{Name: fmt.Sprintf("td%d%s", os.Getpid(), letter), Topology: top, Balance: rule}
	for _, name := range only {
		c.Only = append(c.Only, find(t, top, name).ID)
	}
	l, err := lab.Hold(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return &testLab{Lab: l, t: t, top: l.Config.Topology, agents: make(map[topology.NodeID]*Agent)}
}

func find(t testing.TB, top *topology.Topology, name string) topology.Node {
	t.Helper()
	n, err := top.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (l *testLab) id(name string) topology.NodeID { l.t.Helper(); return find(l.t, l.top, name).ID }

func (l *testLab) link(name string) topology.LinkID {
	l.t.Helper()
	k, err := l.top.LinkByName(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return k.ID
}

// switches are those that are built.
func (l *testLab) switches() (all []topology.NodeID) {
	for n := range l.top.Nodes() {
		if n.Layer != topology.LayerHost && (len(l.Config.Only) == 0 || slices.Contains(l.Config.Only, n.ID)) {
			all = append(all, n.ID)
		}
	}
	return all
}

// start starts an agent on every switch.
func (l *testLab) start(c Config) {
	l.t.Helper()
	c.Topology = l.top
	l.config = c
	for _, id := range l.switches() {
		l.startOne(id)
	}
	l.t.Cleanup(func() {
		for _, a := range l.agents {
			a.Close()
		}
	})
}

func (l *testLab) startOne(id topology.NodeID) *Agent {
	l.t.Helper()
	c := l.config
	c.Self = id
	c.Changed = func(t *topology.Topology) { l.events.add(id, t) }
	var a *Agent
	if err := l.Do(id, func() (err error) { a, err = Start(c); return err }); err != nil {
		l.t.Fatal(err)
	}
	l.agents[id] = a
	return a
}

// listen starts a listener on a host.
func (l *testLab) listen(name string) *listen.Listener {
	l.t.Helper()
	host := find(l.t, l.top, name)
	var u *listen.Listener
	err := l.Do(host.ID, func() (err error) {
		u, err = listen.Open(listen.Config{Interface: "p0", Topology: l.top, Address: host.Addr, Keys: l.config.Keys,
			Deliver: func(t *topology.Topology) { l.events.add(host.ID, t) }})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { u.Close() })
	return u
}

// within waits for something that takes the fabric a moment.
func (l *testLab) within(what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			for _, id := range slices.Sorted(maps.Keys(l.agents)) {
				s := l.agents[id].Status()
				l.t.Logf("%s: down %v, rejected %v, routes %+v", s.Switch, s.Down, s.Rejected, s.Routes)
				for _, n := range s.Neighbours {
					l.t.Logf("  %+v", n)
				}
			}
			l.t.Fatalf("never: %s", what)
		}
	}
}

// adjacent waits until all neighbours hear each other.
func (l *testLab) adjacent() {
	l.t.Helper()
	l.within("all neighbours hear each other", func() bool {
		for id, a := range l.agents {
			for _, n := range a.Status().Neighbours {
				if peer := l.id(n.Name); l.agents[peer] != nil && (!n.Hears || n.State != "up") {
					_ = id
					return false
				}
			}
		}
		return true
	})
}

// fast is a configuration with which tests are short. It has a key: labs of a few
// nodes have so many links down that hosts would not believe unsigned updates.
var fast = Config{
	Keys:  topoupdate.Keys{List: []topoupdate.Key{{ID: 9, Secret: make([]byte, 32)}}},
	Hello: 20 * time.Millisecond, Refresh: 500 * time.Millisecond, MaxAge: 5 * time.Second,
	Damping: topoupdate.Damping{Hold: 50 * time.Millisecond, Max: time.Second},
}

// planOf is what a switch of the whole fabric is to be configured as.
func (c Config) planOf(l *testLab, id topology.NodeID) (fabric.NodePlan, error) {
	c.Topology, c.Self = l.top, id
	return c.plan(l.top)
}
