package control

import (
	"testing"
	"time"

	"weft/topology"
	"weft/topoupdate"
)

// quick is a configuration in which everything takes a tenth of the time that
// the defaults have, so that a second holds ten times as much.
func quick(seed uint64, spec string, t testing.TB) Config {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Topology: top, Seed: seed, Delay: 50 * time.Microsecond,
		Agent: topoupdate.AgentConfig{
			Hello: 10 * time.Millisecond, Refresh: 400 * time.Millisecond, Repeat: 100 * time.Millisecond,
			MaxAge:  1600 * time.Millisecond,
			Damping: topoupdate.Damping{Hold: 20 * time.Millisecond, Max: 300 * time.Millisecond, Forget: time.Second},
		},
	}
}

// settled is the time after which everybody must know the truth.
func settled(c *Config) time.Duration {
	return c.Agent.MaxAge + c.Agent.Damping.Max + 10*c.Agent.Repeat
}

var specs = []string{
	"fat-tree:k=2", "fat-tree:k=4",
	"leaf-spine:leaves=4,spines=3,hosts=2",
	"vl2:d0=2,d1=4,d2=4,hosts=1",
}

func TestFabric_startsQuietAndWhole(t *testing.T) {
	for _, spec := range specs {
		c := quick(1, spec, t)
		f, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		f.Run(2 * time.Second)
		if err := f.Check(); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		for i := range c.Topology.NumNodes() {
			id := topology.NodeID(i)
			if a := f.Agent(id); a != nil {
				for _, n := range a.Neighbours() {
					if sw := int(n.Node) >= c.Topology.NumHosts(); !n.Up || n.Hears != sw {
						t.Errorf("%s: %s: neighbour %+v", spec, c.Topology.Node(id).Name, n)
					}
				}
				if s := a.Stats(); s.LinkDowns > 0 || s.Rejected.Total() > 0 {
					t.Errorf("%s: %s: %+v, rejected %v", spec, c.Topology.Node(id).Name, s, s.Rejected.ByName())
				}
			} else if a := f.Listener(id); a.Stats().Rejected.Total() > 0 || len(a.Database()) == 0 {
				t.Errorf("%s: %s: %+v", spec, c.Topology.Node(id).Name, a.Stats())
			}
		}
	}
}

// Each link and each switch fails by itself, loudly and silently, and comes back.
func TestFabric_singleFailures(t *testing.T) {
	for _, spec := range specs {
		if testing.Short() && spec == "fat-tree:k=4" {
			continue // most of the time, of one goroutine
		}
		c := quick(2, spec, t)
		f, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		run := func(d time.Duration) { f.Run(f.Now() + d) }
		check := func(what, where string) {
			t.Helper()
			if err := f.Check(); err != nil {
				t.Fatalf("%s: %s %s: %v", spec, where, what, err)
			}
		}
		run(time.Second)
		for l := range c.Topology.Links() {
			name := c.Topology.LinkName(l.ID)
			f.Cut(l.ID, true)
			run(time.Millisecond) // of at most 0.1 ms a hop
			check("cut", name)
			f.Cut(l.ID, false)
			run(time.Second)
			check("mended", name)
			if int(l.A) < c.Topology.NumHosts() {
				continue
			}
			for _, upper := range []bool{false, true} {
				f.Deafen(l.ID, upper, true)
				run(100 * time.Millisecond)
				check("deaf", name)
				f.Deafen(l.ID, upper, false)
				run(time.Second)
				check("hears again", name)
			}
		}
		for n := range c.Topology.Nodes() {
			if err := f.Power(n.ID, false); err != nil {
				t.Fatal(err)
			}
			run(time.Millisecond)
			check("off", n.Name)
			if err := f.Power(n.ID, true); err != nil {
				t.Fatal(err)
			}
			run(time.Second)
			check("on", n.Name)
		}
	}
}
