package apps

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// scripts is an app whose clients are shells.
type scripts struct {
	common
	line map[topology.NodeID]string
}

func (scripts) port() uint16                          { return 0 }
func (scripts) server(*site, topology.Node) *exec.Cmd { return nil }

func (w scripts) client(s *site, h topology.Node, _ netip.Addr) (*exec.Cmd, string, error) {
	return command(s.dir, nil, "sh", "-c", w.line[h.ID]), "", nil
}

func (scripts) read(_ *site, h topology.Node, text string) (float64, error) {
	if text != "done\n" {
		return 0, errors.New("it printed " + text)
	}
	return 5 + float64(h.ID), nil
}

// A round in which all programs do their work has figures. One in which a program fails, or prints
// something else, has none but the machine's idle time, and says at which host.
func TestPlay_aProgramThatFails(t *testing.T) {
	s, err := newSite(1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	hosts := []topology.Node{{ID: 0, Name: "a"}, {ID: 1, Name: "b"}}
	here := func(_ topology.NodeID, f func() error) error { return f() }
	for _, c := range []struct{ a, b, says string }{
		{"echo done", "sleep 0.2; echo done", ""}, // as long as the kernel needs to count idle time
		{"echo done", "sleep 0.2; echo done; exit 3", "b with the server at a: sh: exit status 3"},
		{"sleep 0.2; echo nothing", "echo done", "a with the server at b: it printed nothing"},
	} {
		r, err := play(t.Context(), here, s, scripts{line: map[topology.NodeID]string{0: c.a, 1: c.b}}, hosts, []topology.NodeID{1, 0}, kerneltest.Patience)
		if c.says == "" && (err != nil || len(r.clients) != 2 || len(r.p99) != 2 || r.highest() != 6) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v, error %v, want %q", r, err, c.says)
		}
		if r.idle < 0 || r.idle > 100 {
			t.Errorf("%q: idle %g %%", c.says, r.idle)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := play(canceled, here, s, scripts{line: map[topology.NodeID]string{0: "sleep 1000", 1: "sleep 1000"}}, hosts, []topology.NodeID{1, 0}, kerneltest.Patience); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A row that cannot run lets every app of the round fail that it has not measured; an app without
// its programs has no rounds.
func TestFailRow(t *testing.T) {
	apps, row := []App{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Row{Name: Baseline}
	b := &bench{Options: Options{Topology: kerneltest.Topology(t, "fat-tree:k=4"), Apps: apps, Rows: []Row{row}, Note: func(string) {}},
		runs: map[[2]string][]*run{{"a", Baseline}: {{clients: []float64{1}, idle: 50}}}, missing: map[string]string{"c": "c missing: apt install c"}}
	b.failRow(row, 0, errors.New("no lab"))
	b.failRow(row, 1, errors.New("no lab"))
	results := b.results()
	for i, want := range []struct {
		rounds, failed int
		problem        string
	}{{1, 1, "round 2: no lab"}, {0, 2, "round 1: no lab; round 2: no lab"}, {0, 0, "c missing: apt install c"}} {
		if r := results[i]; r.Rounds != want.rounds || r.Failed != want.failed || r.Problem != want.problem || r.Missing != (i == 2) {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
}
