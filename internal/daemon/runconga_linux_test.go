package daemon

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// In mode offload the program at the uplink carries CONGA out: switches write their load into
// its marks, the other host's program reports it, and the status says what is known of each path.
// A connection of little load keeps to its path, as no other is better. letflow spreads flowlets over
// all paths, without reports. Nobody restores an order.
func TestRun_flowletsAtTheUplink(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "fl", byLabels)
	config := func(policy string) string { return "mode: auto\nflowlet_gap: 1ms\npolicy: " + policy + "\n" }
	a, b := n.start("h0.0.2", config("conga")), n.start("h3.1.3", config("conga"))
	c := n.connect("h0.0.2", "h3.1.3")
	for _, h := range []*child{a, b} {
		flowlets := 0
		h.eventually("a path is reported on", func(s map[string]string) bool {
			// 2 KB in 5 ms are a sixtieth of a link, whenever they are sent: less than any metric but 0.
			c.exchange(2000)
			time.Sleep(5 * time.Millisecond)
			flowlets++
			known := 0
			for tag := range 4 {
				if s[fmt.Sprintf("congestion.0.tags.%d.known", tag)] == "true" {
					known++
				}
			}
			return known > 0 && flowlets > 50 && number(s, "offload.marked") > 100
		})
		s := h.status()
		// What left plain, before the carrier was proved, proves nothing.
		if s["mode"] != "offload" || has(s, "dataplane.egress") || number(s, "offload.unproven_marks")*10 > number(s, "offload.marked") {
			t.Errorf("%s: mode %s, %s unproven marks", h.node, s["mode"], s["offload.unproven_marks"])
		}
	}
	// Nothing is congested: no flowlet of the connection has had a reason to move (§3.5).
	if used := used(a.status(), 5); used != 1 {
		t.Errorf("flowlets take %d paths of an idle fabric", used)
	}
	for _, h := range []*child{a, b} {
		h.reload(config("letflow"), "policy letflow\n")
	}
	marked := number(a.status(), "offload.marked")
	a.eventually("flowlets take all paths", func(s map[string]string) bool {
		c.exchange(20_000)
		time.Sleep(5 * time.Millisecond)
		return used(s, 5) == 4
	})
	if s := a.status(); number(s, "offload.marked") > marked || has(s, "congestion.0") {
		t.Errorf("under letflow %s marks came, %d before", s["offload.marked"], marked)
	}
	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
	c.exchange(100_000)
}

// used is how many paths have had more than so many flowlets.
func used(s map[string]string, least int) (n int) {
	for name := range s {
		if strings.HasPrefix(name, "offload.bounces.") && strings.HasSuffix(name, ".flowcells") && number(s, name) > least {
			n++
		}
	}
	return n
}
