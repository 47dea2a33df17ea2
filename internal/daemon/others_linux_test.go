package daemon

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/hostprog"
	"weft/internal/slowtest"
)

// A program in front of weft's that cannot be gone round is told of by name, once for each
// time that it comes, and is in the status as long as it is there.
func TestReconcile_tellsWhatIsInFront(t *testing.T) {
	w := newWorld(t, 1)
	agent := hostprog.ForeignProgram{Hook: "egress", By: "clsact", Kind: "bpf", ID: 12, Name: "agent", Front: true}
	behind := hostprog.ForeignProgram{Hook: "egress", By: "TCX", ID: 13, Name: "later"}
	told := func(want int) {
		t.Helper()
		w.tick()
		w.tick()
		if n := strings.Count(w.log.String(), "clsact program 12 (agent), in front of weft's at egress"); n != want {
			t.Errorf("told %d times, want %d:\n%s", n, want, w.log.String())
		}
		if s := w.d.snapshot(); len(s.Others) != len(w.foreign) || len(s.Others) > 0 && s.Others[0] != w.foreign[0] {
			t.Errorf("status: %+v, want %+v", s.Others, w.foreign)
		}
	}
	told(0)
	w.foreign = []hostprog.ForeignProgram{agent, behind}
	told(1)
	w.foreign = []hostprog.ForeignProgram{behind}
	told(1)
	w.foreign = []hostprog.ForeignProgram{agent}
	told(2)
	if log := w.log.String(); strings.Contains(log, "later") {
		t.Errorf("tells of what is behind:\n%s", log)
	}
}

// A daemon that has given up its privileges names programs that others attach later.
func TestRun_namesWhatStoodInFront(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	c := &chaos{network: n, hosts: []string{"h0.0.2"}}
	a := n.start("h0.0.2", "mode: offload\npolicy: ecmp\n")
	foreignProgram(egress, true)(c, 0)
	defer detachPrograms(false, egress)(c, 0)
	a.waitFor("(foreign) stood")
	var status map[string]string
	for range 50 { // it is looked at once a second
		if status = a.status(); status["others.0.name"] == "foreign" && status["others.0.hook"] == "egress" {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if status["others.0.name"] != "foreign" || status["others.0.hook"] != "egress" {
		t.Errorf("status: %v", status)
	}
	a.end(syscall.SIGTERM)
}
