package stack_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
)

// logged is a fabric whose host h0.0.2 writes to a log.
func logged(t *testing.T, seed uint64, log *bytes.Buffer, change func(*stack.Config)) *world.World {
	t.Helper()
	handler := slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	w := world.New(world.Config{
		Topology: "fat-tree:k=4", Seed: seed,
		Links: simnet.Config{RateBits: 100e6, Delay: 5 * time.Microsecond, HostQueueBytes: 75_000},
		Hosts: func(name string, c *stack.Config) {
			if name == "h0.0.2" {
				c.Log = slog.New(handler)
			}
			change(c)
		},
	})
	t.Cleanup(w.Close)
	return w
}

// says lets time pass until the log says something, and returns what it has said by
// then, which it forgets.
func says(t *testing.T, w *world.World, seed uint64, log *bytes.Buffer, what string) string {
	t.Helper()
	for from := w.Now(); !strings.Contains(log.String(), what); until(t, w, w.Now()+time.Millisecond) {
		if w.Now()-from > 10*time.Second {
			t.Fatalf("seed %d: not in the log: %s\n%s", seed, what, log)
		}
	}
	until(t, w, w.Now()+50*time.Millisecond)
	text := log.String()
	log.Reset()
	return text
}

// The log says each change once, and nothing while nothing changes.
func TestConfig_log(t *testing.T) {
	inShort(t)
	const seed = 3
	var log bytes.Buffer
	w := logged(t, seed, &log, func(c *stack.Config) { c.Liveness = &stack.Liveness{} })
	f := w.Flow("h0.0.2", "h3.0.2", world.Endless)
	says(t, w, seed, &log, "racks e1.0, e1.1, e2.0, e2.1 and 2 more: carried by ipip")
	until(t, w, w.Now()+time.Second)
	if log.Len() > 0 {
		t.Errorf("nothing has changed, and the log says\n%s", &log)
	}

	w.Cut("a0.2", "c1.1")
	text := says(t, w, seed, &log, `level=WARN msg="link avoided" link=a0.2-c1.1 carrier=ipip why=`)
	if n := strings.Count(text, "a0.2-c1.1"); n != 1 {
		t.Errorf("the link is named %d times:\n%s", n, text)
	}
	w.SetTopology(w.Topology().Without(w.Link("a0.3", "c2.1")))
	if text := says(t, w, seed, &log, `msg="links down" links=[a0.3-c2.1] count=1`); strings.Contains(text, "a0.2-c1.1") {
		t.Errorf("the link is named again:\n%s", text)
	}
	w.SetTopology(w.Topology())
	says(t, w, seed, &log, `msg="links up"`)
	w.Mend("a0.2", "c1.1")
	says(t, w, seed, &log, `level=INFO msg="link used again" link=a0.2-c1.1 carrier=ipip`)

	w.Deafen(allCores...)
	says(t, w, seed, &log, "packets go plain, as the kernel's routes have them; ")
	w.Undeafen(allCores...)
	says(t, w, seed, &log, "carried by ipip")

	w.SetTopology(w.Topology().Without(w.Link("a0.2", "c1.2")))
	says(t, w, seed, &log, `level=WARN msg="links down" links=[a0.2-c1.2] count=1`)
	w.SetTopology(w.Topology())
	says(t, w, seed, &log, `level=INFO msg="links up" links=[a0.2-c1.2] count=1`)
	if f.Received == 0 {
		t.Error("nothing arrived meanwhile")
	}
}

// A Host that writes to a log does to its packets what it does without one.
func TestConfig_logChangesNothing(t *testing.T) {
	trace := func(log *bytes.Buffer, to *slog.Logger) uint64 {
		w := logged(t, 4, log, func(c *stack.Config) { c.Log = to })
		w.Flow("h0.0.2", "h3.0.2", 1<<20)
		w.At(20*time.Millisecond, func() { w.SetTopology(w.Topology().Without(w.Link("a0.2", "c1.1"))) })
		if err := w.Run(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		return w.Trace()
	}
	var log bytes.Buffer
	if a, b := trace(&log, nil), trace(&log, slog.New(slog.NewTextHandler(&log, nil))); a != b {
		t.Errorf("packets differ: %x and %x", a, b)
	}
	if !strings.Contains(log.String(), "links down") {
		t.Errorf("the log says\n%s", &log)
	}
}
