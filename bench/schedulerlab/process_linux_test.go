package schedulerlab

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weft/bench/child"
)

// A process that ends by itself is told of with what it has said, while it is waited for and at the
// end; one that runs is killed, and after an interrupt, which all get, it may have ended.
func TestScheduled_processThatEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &Scheduled{dir: &child.Dir{Path: t.TempDir()}, run: make(map[string]*child.Process), given: ctx.Done()}
	for name, script := range map[string]string{"ends": "echo no room; exit 3", "also": "exit 4", "stays": "exec sleep 1000"} {
		if err := s.start(name, "", exec.Command("sh", "-c", script)); err != nil {
			t.Fatal(err)
		}
	}
	lacks := func() string { return "something" }
	for _, err := range []error{s.await(ctx, "ends", processLimit, lacks), s.end("ends")} {
		if err == nil || !strings.Contains(err.Error(), "ended: exit status 3") || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%v", err)
		}
	}
	<-s.run["also"].Ended()
	cancel()
	if err := s.await(ctx, "stays", processLimit, lacks); err == nil || !strings.Contains(err.Error(), "canceled: something") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"also", "stays", "stays"} {
		if err := s.end(name); err != nil {
			t.Error(err)
		}
	}
	if len(s.run) > 0 {
		t.Errorf("%v are left", s.run)
	}
}

// The scheduler is waited for until it can have forgotten the flows of before: it hears of a flow a
// period after its end, keeps it for the lifetime, and says so a round later.
func TestConfig_settles(t *testing.T) {
	for _, every := range []time.Duration{100 * time.Millisecond, time.Second, 12 * time.Second} {
		c := Config{Every: every, Lifetime: 5 * every}
		if limit := c.settles(); limit < processLimit+7*every {
			t.Errorf("with a period of %v it has %v", every, limit)
		}
	}
}
