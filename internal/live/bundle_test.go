package live

import (
	"testing"
)

func TestBundle(t *testing.T) {
	f := fatTree(t, "fat-tree:k=8")
	b := Bundle(f)
	if err := b.Fabric.Check(); err != nil {
		t.Fatal(err)
	}
	// 8 pods of 3 tiers, 4 groups of cores; hosts to edge, edge to aggregation, aggregation to 4 groups.
	if n, l := len(b.Fabric.Nodes), len(b.Fabric.Links); n != 8*3+4 || l != 8*2+8*4 {
		t.Errorf("%d nodes and %d links, want 28 and 48", n, l)
	}
	members, rate := 0, 0.0
	for _, l := range b.Fabric.Links {
		members += l.Members
		rate += l.Rate
	}
	if members != len(f.Links) || rate != 20e6*float64(members) {
		t.Errorf("%d links of %v bit/s, want %d", members, rate, len(f.Links))
	}
	frame := &Frame{Links: make([]LinkFrame, len(f.Links))}
	for i := range frame.Links {
		frame.Links[i] = LinkFrame{State: Working, Up: Flow{Rate: 1e6, Use: 0.05, Drops: 1}}
	}
	frame.Links[5].State, frame.Links[5].Up.Use = Broken, 0.9
	small := b.Frame(frame)
	if s := small.Links[b.Links[5]]; s.State != Suspected || s.Bad != 1 || s.Up.Use != 0.9 || s.Up.Rate != 16e6 || s.Up.Drops != 16 {
		t.Errorf("a bundle of 16 of which one is down is %+v", s)
	}
	for i := range frame.Links {
		if b.Links[i] == b.Links[5] {
			frame.Links[i].State = Broken
		}
	}
	if s := b.Frame(frame).Links[b.Links[5]]; s.State != Broken || s.Bad != 16 {
		t.Errorf("a bundle that is down is %+v", s)
	}
}
