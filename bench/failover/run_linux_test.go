package failover

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weft/bench/testbed"
	"weft/internal/slowtest"
	"weft/lab"
)

// labOptions are for a lab that other tests running at the same time can bear.
func labOptions(t *testing.T, letter string) Options {
	t.Helper()
	if err := testbed.CanUseNamespaces(); err != nil {
		t.Skipf("network namespaces: %v", err)
	}
	if testing.Short() {
		t.Skip("what takes seconds is left out with -short")
	}
	name := fmt.Sprintf("fo%s%d", letter, os.Getpid())
	t.Cleanup(func() {
		if left, _ := filepath.Glob("/run/netns/weft-" + name + "-*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
			lab.Down(name)
		}
	})
	return Options{
		Topology: parse(t, "fat-tree:k=4"), RateMbit: 3, Load: 0.5, Kinds: Kinds[:1], Agents: []bool{true}, Liveness: true,
		Repetitions: 2, Hello: 300 * time.Millisecond, Outage: 2 * time.Second, Settle: 500 * time.Millisecond, Seed: 5, Lab: name,
		Note: func(s string) { t.Log(s) },
	}
}

func TestRun_measuresASwitchAndALink(t *testing.T) {
	slowtest.System(t)
	o := labOptions(t, "r")
	results, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || len(results[0].Samples) != 2 {
		t.Fatalf("%+v", results)
	}
	r := results[0]
	if r.LostConnections != 0 || r.GoodputBefore <= 0 || r.GoodputDuring <= 0 || r.GoodputAfter <= 0 {
		t.Errorf("%+v", r)
	}
	node, link := r.Samples[0], r.Samples[1]
	if node.OthersExpected != 0 || link.OthersExpected == 0 || link.OthersKept == 0 {
		t.Errorf("others kept: %+v, %+v", node, link)
	}
	for _, s := range r.Samples {
		if s.LeftMs < 0 || s.LeftMs > milliseconds(10*o.Outage) || (s.HolePackets == 0) != (s.LeftMs == 0) {
			t.Errorf("%+v", s)
		}
	}
}

// A tap that nobody tells of a failure sees that packets go on into the hole.
func TestRepeat_seesAHoleThatStaysOpen(t *testing.T) {
	slowtest.System(t)
	o := labOptions(t, "h")
	o.Liveness = false
	l, err := buildLab(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to, _ := permute(o.Topology, o.Seed)
	r, err := startRig(t.Context(), &o, l, false, streamRate(&o, to))
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	rep, err := r.repeat(t.Context(), "3.0", lab.FailSilent)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Closed || rep.HolePackets < 10 || rep.LeftMs < milliseconds(o.Outage/2) {
		t.Errorf("nobody closed the hole, but %+v", rep)
	}
	if rep.RestoredMs < 0 {
		t.Errorf("what was never given up is not used: %+v", rep)
	}
}
