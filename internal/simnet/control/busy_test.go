package control

import (
	"math/rand/v2"
	"testing"
	"time"

	"weft/topology"
)

// Switches whose processors are busy say hello too late again and again. All links work, so
// the fabric must not do without them for as long as that lasts. A failure is found even so.
func TestFabric_busySwitchesKeepTheirLinks(t *testing.T) {
	for seed := range uint64(5) {
		c := quick(seed, "fat-tree:k=4", t)
		c.Agent.Damping.Forget = time.Minute
		f, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 0x62757379))
		switches, first := c.Topology.NumNodes()-c.Topology.NumHosts(), c.Topology.NumHosts()
		links := float64(c.Topology.NumLinks() - c.Topology.NumHosts())
		f.Run(time.Second)
		var down [4]float64 // of all links between switches, in each quarter of ten seconds
		const step, steps = 5 * time.Millisecond, 2000
		for i := range steps {
			if r.IntN(2) == 0 { // each switch five times a second, for up to a tenth of one; hellos are awaited for 30 ms
				f.Busy(topology.NodeID(first+r.IntN(switches)), time.Duration(r.Int64N(int64(100*time.Millisecond))))
			}
			f.Run(f.Now() + step)
			down[i*len(down)/steps] += float64(len(f.Listener(0).Topology().Down())) / links / steps * float64(len(down))
		}
		var mistakes, downs uint64
		for id := range switches {
			a := f.Agent(topology.NodeID(first + id))
			for _, n := range a.Neighbours() {
				mistakes += n.Mistakes
			}
			downs += a.Stats().LinkDowns
		}
		t.Logf("seed %d: of the links are down %.3f; %d mistakes, %d times down", seed, down, mistakes, downs)
		if mistakes == 0 {
			t.Errorf("seed %d: nobody was late", seed)
		}
		if down[3] > 0.15 { // nine tenths if a mistake does not make more patient
			t.Errorf("seed %d: of the links, which all work, %.3f are down", seed, down)
		}
		if err := f.Power(topology.NodeID(first+switches-1), false); err != nil {
			t.Fatal(err)
		}
		f.Run(f.Now() + settled(&c))
		if err := f.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
