package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/chaos"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

func chaosLab(t *testing.T, letter string) *lab.Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d%s", os.Getpid(), letter)
	t.Cleanup(func() {
		if _, err := lab.Down(name); err != nil {
			t.Error(err)
		}
	})
	lab, err := lab.Up(t.Context(), lab.Config{Name: name, Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lab.Close() })
	return lab
}

// Chaos prints what it does, and heals it.
func TestLabChaos(t *testing.T) {
	slowtest.System(t)
	l := chaosLab(t, "y")
	out := mustWeft(t, "lab", "chaos", "--name", l.Config.Name, "--seed", "3", "--duration", "1s", "--interval", "50ms", "--outage", "100ms")
	failed, healed := strings.Count(out, "  fail  "), strings.Count(out, "  heal  ")
	if failed < 5 || failed != healed {
		t.Errorf("%d failures, %d healed:\n%s", failed, healed, out)
	}
	if f, err := l.Failures(); err != nil || len(f) > 0 {
		t.Errorf("left: %v, %v", f, err)
	}
	if _, err := l.Fail("3.0", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	wantError(t, "lab chaos --duration 1s --name "+l.Config.Name, "c1.1 FAILED; weft lab heal --name "+l.Config.Name)
}

// What chaos has made fail when it is interrupted it heals, and nothing else.
func TestLabChaos_interrupted(t *testing.T) {
	slowtest.System(t)
	l := chaosLab(t, "x")
	if _, err := l.Fail("e0.0-a0.2", lab.FailSilent); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil }) // at the first event
	err := playChaos(ctx, out, l, []chaos.Event{
		{At: 0, Target: "3.0", Mode: chaos.Loud},
		{At: time.Hour, Target: "3.0"},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if f, err := l.Failures(); err != nil || len(f) != 1 || f["e0.0-a0.2"] != lab.FailSilent {
		t.Errorf("left: %v, %v", f, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
