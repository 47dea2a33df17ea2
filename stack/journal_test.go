package stack

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"weft/internal/event"
	"weft/topology"
)

// deaf is a device that does not take topologies while it has a reason.
type deaf struct {
	encapsulating
	why *error
}

func (d deaf) SetTopology(*topology.Topology) error { return *d.why }

// That a device does not take the paths in use is logged once, and that it does again.
func TestConfig_logOfADeafDevice(t *testing.T) {
	_, super := superPair(1500)
	var log bytes.Buffer
	var why error
	h := mustNew(t, Config{Address: addrA, Topology: fatTree, Policy: "presto", Device: deaf{encapsulating{GatewayDevice: super}, &why},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer h.Close()
	for _, step := range []struct {
		why   error
		lines int
		says  string
	}{
		{nil, 0, ""}, {errors.New("no room"), 1, `level=WARN msg="the device does not take the paths in use, and is told again" why="no room"`},
		{errors.New("no room"), 0, ""}, {nil, 1, `level=INFO msg="the device has taken the paths in use"`}, {nil, 0, ""},
	} {
		why = step.why
		log.Reset()
		if err := h.SetTopology(fatTree); err != step.why {
			t.Errorf("%v, want %v", err, step.why)
		}
		if s := log.String(); strings.Count(s, "\n") != step.lines || !strings.Contains(s, step.says) {
			t.Errorf("after %v the log says\n%swant %d lines with %s", step.why, s, step.lines, step.says)
		}
	}
}

// A device that fails is logged with the reason. One that is closed is not.
func TestConfig_logOfADeviceThatFails(t *testing.T) {
	for _, fails := range []bool{true, false} {
		near, _ := superPair(1500)
		var log bytes.Buffer
		h := mustNew(t, Config{Address: addrA, Topology: fatTree, Device: near, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if fails {
			h.fail(errors.New("no such device"))
		}
		h.Close()
		want := ""
		if fails {
			want = `level=ERROR msg="device failed, all connections end" why="no such device"`
		}
		if s := log.String(); !strings.Contains(s, want) || !fails && s != "" {
			t.Errorf("fails %v: the log says\n%s", fails, s)
		}
	}
}

// A Host without Liveness tells, too, what it did not tell: at the latest when it is closed.
func TestConfig_logTellsWhatWasSuppressed(t *testing.T) {
	near, _ := superPair(1500)
	var log bytes.Buffer
	h := mustNew(t, Config{Address: addrA, Topology: fatTree, Device: near, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range event.Burst + 20 {
		for _, top := range []*topology.Topology{fatTree.Without(0), fatTree} {
			if err := h.SetTopology(top); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Close()
	if s := log.String(); !strings.Contains(s, "of=links_down") || !strings.Contains(s, "of=links_up") || strings.Count(s, "links down") > event.Burst+20 {
		t.Errorf("the log says\n%s", s)
	}
}
