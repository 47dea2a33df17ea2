package source

import (
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/internal/live"
	"weft/lab"
	"weft/topology"
)

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(name string) error { _, err := lab.Down(name); return err })
}

func upLab(t *testing.T, name string, spec string) {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(t.Context(), lab.Config{Name: name, Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	t.Cleanup(func() { lab.Down(name) })
}

// A lab's links are up, down or silent as they were made; one that is built anew under the same
// name is another fabric.
func TestLab(t *testing.T) {
	kerneltest.NeedRoot(t)
	name := kerneltest.LabName("v")
	if _, err := OpenLab(name, live.KindLab); err == nil {
		t.Fatal("a lab that is not up was opened")
	}
	upLab(t, name, "fat-tree:k=2")
	src, err := OpenLab(name, live.KindLab)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var m live.Meter
	frame := func() (*live.Fabric, *live.Frame) {
		t.Helper()
		fab, err := src.Fabric(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := src.Sample(t.Context())
		if err != nil || s.Trouble != "" {
			t.Fatal(err, s.Trouble)
		}
		return fab, m.Next(fab, s)
	}
	fab, f := frame()
	if len(fab.Nodes) != 7 || len(fab.Links) != 6 || fab.Links[0].Rate != 20e6 || fab.Links[0].Room != 75000 || !fab.CanFail {
		t.Fatalf("fabric %+v", fab)
	}
	for i, l := range f.Links {
		if l.State != live.Working {
			t.Errorf("%s is %v", fab.Links[i].Name, l.State)
		}
	}
	if err := src.Fail("a0.1-c1.1", "loud"); err != nil {
		t.Fatal(err)
	}
	if err := src.Fail("e1.0", "silent"); err != nil {
		t.Fatal(err)
	}
	if err := src.Fail("nowhere", "loud"); err == nil {
		t.Error("a node that is none was made to fail")
	}
	_, f = frame()
	for i, l := range f.Links {
		want := live.Working
		switch name := fab.Links[i].Name; name {
		case "a0.1-c1.1":
			want = live.Broken
		case "h1.0.2-e1.0", "e1.0-a1.1":
			want = live.Silent
		}
		if l.State != want {
			t.Errorf("%s is %v, want %v", fab.Links[i].Name, l.State, want)
		}
	}
	if len(f.Failures) != 2 || f.Total.Down != 3 || len(f.Events) < 3 {
		t.Errorf("failures %v, %d links down, events %v", f.Failures, f.Total.Down, f.Events)
	}
	if err := src.Heal(""); err != nil {
		t.Fatal(err)
	}
	if p := src.Paths(0, 1); len(p) != 1 || len(p[0].Links) != 6 {
		t.Errorf("paths %v", p)
	}
	if _, err := lab.Down(name); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fabric(t.Context()); err == nil {
		t.Error("a lab that was taken down is still there")
	}
	upLab(t, name, "fat-tree:k=2")
	if again, _ := frame(); again.Version != fab.Version+1 {
		t.Errorf("version %d after %d", again.Version, fab.Version)
	}
}
