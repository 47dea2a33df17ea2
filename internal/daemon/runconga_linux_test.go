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
// letflow spreads flowlets over all paths, without reports. Nobody restores an order.
func TestRun_flowletsAtTheUplink(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "fl", byLabels)
	config := func(policy string) string { return "mode: auto\nflowlet_gap: 1ms\npolicy: " + policy + "\n" }
	a, b := n.start("h0.0.2", config("conga")), n.start("h3.1.3", config("conga"))
	c := n.connect("h0.0.2", "h3.1.3")
	for _, h := range []*child{a, b} {
		h.eventually("all paths are reported on", func(s map[string]string) bool {
			c.exchange(20_000)
			time.Sleep(5 * time.Millisecond)
			known := 0
			for tag := range 4 {
				if s[fmt.Sprintf("congestion.0.tags.%d.known", tag)] == "true" {
					known++
				}
			}
			return known == 4 && number(s, "offload.marked") > 100
		})
		s := h.status()
		if s["mode"] != "offload" || has(s, "dataplane.egress") || s["offload.unproven_marks"] != "0" && s["offload.unproven_marks"] != "" {
			t.Errorf("%s: mode %s, %s unproven marks", h.node, s["mode"], s["offload.unproven_marks"])
		}
	}
	for _, h := range []*child{a, b} {
		h.reload(config("letflow"), "policy letflow\n")
	}
	marked := number(a.status(), "offload.marked")
	a.eventually("flowlets take all paths", func(s map[string]string) bool {
		c.exchange(20_000)
		time.Sleep(5 * time.Millisecond)
		used := 0
		for name := range s {
			if strings.HasPrefix(name, "offload.bounces.") && strings.HasSuffix(name, ".flowcells") && number(s, name) > 5 {
				used++
			}
		}
		return used == 4
	})
	if s := a.status(); number(s, "offload.marked") > marked || has(s, "congestion.0") {
		t.Errorf("under letflow %s marks came, %d before", s["offload.marked"], marked)
	}
	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
	c.exchange(100_000)
}
