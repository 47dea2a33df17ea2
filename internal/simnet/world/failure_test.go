package world

import (
	"strings"
	"testing"
	"time"

	"weft/internal/simnet"
)

// A core that fails takes nothing for good from a transfer, whoever is told of
// it and when.
func TestFail_transfersSurvive(t *testing.T) {
	for _, c := range []struct {
		name string
		told func(w *World)
	}{
		{"all told", func(w *World) { w.SetTopology(w.Topology().WithoutNode(w.node("c1.1"))) }},
		{"hosts told", func(w *World) { w.SetHosts(w.Topology().WithoutNode(w.node("c1.1"))) }},
		{"the sender told", func(w *World) { w.SetHosts(w.Topology().WithoutNode(w.node("c1.1")), "h0.0.2") }},
		{"nobody told, but soon healed", func(w *World) { w.Heal("c1.1") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if race && c.name != "the sender told" {
				t.Skip("takes too long under the race detector")
			}
			w := newWorld(t, Config{Topology: "fat-tree:k=4", Seed: 12})
			f := w.Flow("h0.0.2", "h1.0.2", megabytes(8, 3))
			var lost uint64
			w.At(time.Millisecond, func() { w.Fail("c1.1") })
			w.At(3*time.Millisecond, func() { c.told(w) })
			w.At(4*time.Millisecond, func() { lost = w.Network().Stats().Dropped[simnet.NodeDown] })
			run(t, w, time.Minute)
			if lost == 0 || f.Received != f.Bytes {
				t.Errorf("%d packets lost, %d bytes received", lost, f.Received)
			}
		})
	}
}

func TestSetSwitch_repairsPlainTraffic(t *testing.T) {
	w := newWorld(t, Config{Topology: "fat-tree:k=4", Seed: 13})
	down := w.Link("a0.2", "e0.1")
	w.Cut("a0.2", "e0.1")
	w.SetSwitch("e0.0", w.Topology().Without(down))
	w.SetSwitch("e0.1", w.Topology().Without(down))
	w.SetHosts(w.Topology().Without(down), "h0.0.2", "h0.1.2")
	w.Flow("h0.0.2", "h0.1.2", 100_000)
	run(t, w, time.Minute)
	if n := w.Network().Stats(); n.Dropped[simnet.LinkDown] != 0 {
		t.Errorf("%+v", n)
	}
	w.Mend("a0.2", "e0.1")
	w.SetTopology(w.Topology())
	w.Flow("h0.0.2", "h0.1.2", 100_000)
	run(t, w, time.Minute)
	if up, down := w.Network().Link(down); up.Packets+down.Packets == 0 {
		t.Error("the link that was mended carries nothing")
	}
}

func TestFail_mistakesComeOutOfRun(t *testing.T) {
	for name, scenario := range map[string]func(w *World){
		"Fail":      func(w *World) { w.Fail("x9") },
		"Heal":      func(w *World) { w.Heal("x9") },
		"SetSwitch": func(w *World) { w.SetSwitch("x9", w.Topology()) },
		"SetHosts":  func(w *World) { w.SetHosts(w.Topology(), "x9") },
	} {
		w := newWorld(t, Config{})
		scenario(w)
		if err := w.Run(time.Second); err == nil || !strings.Contains(err.Error(), "x9") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
