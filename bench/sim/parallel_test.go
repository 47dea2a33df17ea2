package sim

import (
	"strings"
	"testing"

	"weft/topology"
)

// Of two links between spine 1 and leaf 1 one is down. Leaf 0 sends as much to each spine, so
// the other link has all that two have between spine 0 and leaf 1.
func TestParallel_theLinkThatIsLeftHasTwiceAsMuch(t *testing.T) {
	topo := parse(t, "leaf-spine:leaves=2,spines=4,hosts=40,host-rate=1000,fabric-rate=40000")
	dead, err := topo.LinkByName("e0.1-a0.2")
	if err != nil {
		t.Fatal(err)
	}
	c := drbSetting(topo.Without(dead.ID), "switch-ecmp")
	c.Parallel, c.Resequencer = 2, nil
	w := permutation(topo, 1, 0)
	w.flows = nil
	for h := range 40 { // many flows of a pair each
		for i := range 40 {
			f := permutation(topo, 1, 200_000).flows[0]
			f.Src, f.Dst = topology.NodeID(h), topology.NodeID(40+(h+i)%40)
			w.flows = append(w.flows, f)
		}
	}
	c.Workload, c.Warmup = w, 0
	c.Duration *= 100
	r := run(t, c)
	var down [4]float64
	for i := range down {
		down[i] = float64(r.Ports[2*(int(dead.ID)-2+i)+1].Bytes)
	}
	if down[2] != 0 || r.Flows != 1600 {
		t.Errorf("the link that is down has %v bytes; %d flows of 1600 ended", down[2], r.Flows)
	}
	if of := down[3] / (down[0] + down[1]); of < 0.85 || of > 1.15 {
		t.Errorf("the link that is left has %.2f of what spine 0's two have, want as much: %v", of, down)
	}
	if of := down[0] / down[1]; of < 0.85 || of > 1.15 {
		t.Errorf("spine 0's links have %v, want as much each", down)
	}
}

func TestParallel_errorsSayWhatDoesNotFit(t *testing.T) {
	for want, c := range map[string]Config{
		"3; want a part of the 4": {Topology: parse(t, "leaf-spine:leaves=2,spines=4,hosts=2,host-rate=1000,fabric-rate=1000"), Policy: "switch-ecmp", Parallel: 3},
		"no leaf-spine":           {Topology: parse(t, "fat-tree:k=4"+rates), Policy: "switch-ecmp", Parallel: 2},
		"switch-drill does not":   {Topology: parse(t, "leaf-spine:leaves=2,spines=4,hosts=2,host-rate=1000,fabric-rate=1000"), Policy: "switch-drill", Parallel: 2},
		"from 1 to 8":             {Topology: parse(t, "leaf-spine:leaves=2,spines=4,hosts=2,host-rate=1000,fabric-rate=1000"), Policy: "switch-ecmp", Parallel: 9},
	} {
		d := drbSetting(c.Topology, c.Policy)
		d.Parallel, d.Workload = c.Parallel, &list{}
		if _, err := Run(d); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "which switch-drill does not know", "switch-drill does not"), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
