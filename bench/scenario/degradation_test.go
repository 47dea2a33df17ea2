package scenario

import (
	"testing"
	"time"

	"weft/internal/simnet/world"
	"weft/internal/slowtest"
	"weft/topology"
)

// Capacity falls by a path's share with each core that fails, comes back with
// it, and no connection is lost (DRB Fig. 12).
func TestDegradation_stepsOfOnePath(t *testing.T) {
	type fabric struct {
		k     int
		phase time.Duration
	}
	fabrics := []fabric{{4, 200 * time.Millisecond}}
	if slowtest.Long() {
		fabrics = append(fabrics, fabric{4, 400 * time.Millisecond}, fabric{6, 200 * time.Millisecond})
	}
	for _, c := range fabrics {
		r, err := degradation{K: c.k, Policy: "drb", Phase: c.phase, Learn: time.Millisecond, Seed: 1}.Run()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("k=%d: Mbit/s %.4g, 95 %% after %v, %d retransmits, %d timeouts", c.k, r.Steady, r.Recovered, r.Retransmits, r.Timeouts)
		if hosts := c.k * c.k * c.k / 4; r.Stuck > 0 || r.Connections != hosts {
			t.Errorf("k=%d: %d times a connection stood still, of %d connections", c.k, r.Stuck, r.Connections)
		}
		// What all hosts can receive, of it the live cores' share: more cannot be,
		// but for what was queued when the time began.
		const payload = (1500.0 - 20 - 40) / 1514 // of a frame, with an outer header
		n := float64(c.k * c.k / 4)
		for i, live := range []float64{n, n - 1, n - 2, n - 1, n} {
			capacity := float64(r.Connections) * float64(degradationLinks.RateBits) * payload * live / n
			if r.Steady[i] < 0.88*capacity || r.Steady[i] > 1.01*capacity {
				t.Errorf("k=%d, %s: %.4g bit/s, can be %.4g", c.k, degradationPhases[i], r.Steady[i], capacity)
			}
		}
		if want := int(5 * c.phase / degradationTick); len(r.Goodput) != want {
			t.Errorf("k=%d: goodput at %d ticks, want %d", c.k, len(r.Goodput), want)
		}
	}
}

func TestPermutation_crossesPods(t *testing.T) {
	w := world.New(world.Config{Topology: "fat-tree:k=6", Links: degradationLinks})
	defer w.Close()
	seen := make(map[topology.NodeID]bool)
	for from, to := range permutation(w.Topology(), 3) {
		if seen[to] || len(w.Topology().Paths(topology.NodeID(from), to).Live) != 9 {
			t.Errorf("host %d sends to %d", from, to)
		}
		seen[to] = true
	}
	if len(seen) != 54 {
		t.Errorf("%d receivers", len(seen))
	}
}
