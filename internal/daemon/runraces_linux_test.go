package daemon

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"weft/internal/service"
	"weft/internal/slowtest"
)

// Several ask for the status while policies change and packets flow both ways; the
// race detector watches the daemon, if it watches the test.
func TestRun_statusWhileReloading(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	config := func(policy string) string { return "policy: " + policy + "\n" }
	a := n.start("h0.0.2", config("presto"), dataplanes[1].env)
	n.start("h3.1.3", config("presto"), dataplanes[1].env)
	var socket string
	n.do("h0.0.2", func() (err error) {
		socket, err = StatusSocket()
		return err
	})
	pair := n.connect("h0.0.2", "h3.1.3")
	var asking sync.WaitGroup
	var ended atomic.Bool
	var answers atomic.Int64
	for range 3 {
		asking.Go(func() {
			for !ended.Load() {
				if _, err := service.AskStatus(t.Context(), socket, "weft host"); err != nil {
					t.Error(err)
					return
				}
				answers.Add(1)
			}
		})
	}
	policies := []string{"drb", "luopan", "conga", "flowcell-drb", "ecmp", "presto"}
	for i, policy := range policies {
		a.write(config(policy))
		a.cmd.Process.Signal(syscall.SIGHUP)
		pair.exchange(1_000_000)
		a.eventually("reload to "+policy, func(s map[string]string) bool {
			return number(s, "reloads") == i+1 && s["policy"] == policy
		})
		pair.exchange(1_000_000)
	}
	ended.Store(true)
	asking.Wait()
	if answers.Load() < 10 {
		t.Errorf("%d answers", answers.Load())
	}
	a.end(syscall.SIGTERM)
}
