package switchd

import (
	"os"
	"slices"
	"testing"
	"time"

	"weft/lab"
	"weft/topoupdate"
)

// From the moment before a failure until its neighbours and the furthest host
// know. It measures, and so runs only when asked to: WEFT_MEASURE=1.
func TestAgents_latency(t *testing.T) {
	if os.Getenv("WEFT_MEASURE") == "" {
		t.Skip("measures for a minute; set WEFT_MEASURE=1")
	}
	l := upLab(t, "n", "fat-tree:k=4")
	c := fast
	c.Routes = true
	c.Damping = topoupdate.Damping{Hold: 20 * time.Millisecond, Max: 20 * time.Millisecond}
	l.start(c)
	l.adjacent()
	who := l.everybody("h0.0.2", "h3.1.3")
	const link = "a3.2-c1.1"
	for _, mode := range []lab.FailureMode{lab.FailLoud, lab.FailSilent} {
		took := make(map[string][]time.Duration)
		for range 30 {
			at, err := l.Fail(link, mode)
			if err != nil {
				t.Fatal(err)
			}
			know := []string{"a3.2", "c1.1", "a0.2", "e0.0", "h0.0.2", "h3.1.3"}
			l.wantLink(link, false, l.only(who, know...))
			for _, node := range know {
				when, _ := l.events.first(l.id(node), l.link(link), false, at)
				took[node] = append(took[node], when.Sub(at))
			}
			if _, err := l.Heal(link); err != nil {
				t.Fatal(err)
			}
			l.wantLink(link, true, who)
			l.adjacent()
		}
		for _, node := range []string{"a3.2", "c1.1", "a0.2", "e0.0", "h0.0.2", "h3.1.3"} {
			slices.Sort(took[node])
			t.Logf("%s, until %s knows: median %v, 90 %% %v, worst %v", mode, node, took[node][15], took[node][27], took[node][29])
		}
	}
	var worst float64
	for _, a := range l.agents {
		worst = max(worst, a.Status().Routes.LastMS)
	}
	t.Logf("the slowest last change of routes took %.2f ms", worst)
}
