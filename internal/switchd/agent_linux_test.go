package switchd

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"weft/topology"
)

func TestAgent_closeLeaksNothing(t *testing.T) {
	l := upLab(t, "l", "fat-tree:k=4", "e0.0", "a0.2")
	c := fast
	c.Topology, c.Self, c.Routes = l.top, l.id("a0.2"), true
	life := func(end func(*Agent) error) {
		var a *Agent
		if err := l.Do(c.Self, func() (err error) { a, err = Start(c); return err }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := end(a); err != nil {
				t.Error(err)
			}
		}
		<-a.Done()
		if err := a.Err(); err != nil {
			t.Error(err)
		}
	}
	life((*Agent).Close)
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	for range 10 {
		life((*Agent).Close)
		life((*Agent).Kill)
	}
	l.within("goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	l.within("descriptors are closed", func() bool { return descriptors(t) <= files })
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestStart_bad(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	edge := topology.NodeID(top.NumHosts())
	for want, c := range map[string]Config{
		"Topology is missing":   {},
		"is no switch":          {Topology: top, Self: 0},
		"none of the ports nx0": {Topology: top, Self: edge, PortFormat: "nx%d"},
		"port format":           {Topology: top, Self: edge, PortFormat: "nx"},
		"Hello":                 {Topology: top, Self: edge, Hello: time.Hour},
	} {
		a, err := Start(c)
		if err == nil {
			a.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The status is to be read by programs.
func TestStatus_isJSON(t *testing.T) {
	l := upLab(t, "j", "fat-tree:k=4", "h0.0.2", "e0.0", "a0.2")
	c := fast
	c.Routes = true
	l.start(c)
	l.adjacent()
	b, err := json.Marshal(l.agents[l.id("e0.0")].Status())
	if err != nil {
		t.Fatal(err)
	}
	var s Status
	if err := json.Unmarshal(b, &s); err != nil || s.Switch != "e0.0" || len(s.Neighbours) != 4 || s.Routes == nil {
		t.Errorf("%s: %v", b, err)
	}
	if n := s.Neighbours[2]; n.Name != "a0.2" || n.State != "up" || !n.Hears || n.Sent == 0 || n.Got == 0 {
		t.Errorf("neighbour %+v", n)
	}
	if n := s.Neighbours[3]; n.State != "down" || n.Why != "no carrier" {
		t.Errorf("port without a device: %+v", n)
	}
}
