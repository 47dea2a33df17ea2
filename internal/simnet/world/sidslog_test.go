package world

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/slowtest"
	"weft/stack"
	"weft/topology"
)

// With SIDs in both families each finds out by itself what a link does. In the log it goes out of
// use once, and is used again once, when the last family uses it: what one family finds takes
// nothing back that the other has said.
func TestSIDs_logOfTwoFamilies(t *testing.T) {
	slowtest.Unraced(t)
	const seed = 5
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	g, sids := graphOf(t, top)
	links := tenGigabit
	links.SIDs, links.RateBits = sids, 1e8
	var log bytes.Buffer
	w := newWorld(t, Config{Fabric: top, Links: links, Seed: seed, IPv6: true, Hosts: func(host string, c *stack.Config) {
		c.Topology, c.Topology6, c.CarryIPv6 = seen(t, g, c.Address), seen(t, g, c.Address6), false
		c.Carrier, c.Policy, c.Liveness = encap.CarrierSRv6, "drb", &stack.Liveness{}
		if host == "h0.0.2" {
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
		}
	}})
	pass := func(d time.Duration) {
		t.Helper()
		if err := w.RunUntil(w.Now() + d); err != nil {
			t.Fatal(err)
		}
	}
	h := w.Host("h0.0.2")
	both := func(what string, is func(down bool) bool) {
		t.Helper()
		for end := w.Now() + 20*time.Second; !is(len(h.Topology().Down()) > 0) || !is(len(h.Topology6().Down()) > 0); pass(10 * time.Millisecond) {
			if w.Now() > end {
				t.Fatalf("seed %d: not in both families: %s: %v, %v\n%s", seed, what, h.Topology().Down(), h.Topology6().Down(), &log)
			}
		}
		pass(time.Second)
	}
	count := func(what string, avoided, again int) {
		t.Helper()
		text := log.String()
		if n, m := strings.Count(text, `msg="link avoided"`), strings.Count(text, `msg="link used again"`); n != avoided || m != again {
			t.Errorf("seed %d: %s, the log has %d times that the link is avoided, and %d times that it is used again:\n%s", seed, what, n, m, text)
		}
		log.Reset()
	}
	w.Flow("h0.0.2", "h3.1.3", Endless)
	pass(time.Second)
	if text := log.String(); !strings.Contains(text, `carrier="IPv6 in srv6"`) || !strings.Contains(text, "carrier=srv6") {
		t.Errorf("the log does not tell the families apart:\n%s", text)
	}
	log.Reset()
	w.Cut("a0.2", "c1.1")
	both("the link is down", func(down bool) bool { return down })
	count("while it is cut", 1, 0)
	w.Mend("a0.2", "c1.1")
	both("the link is used", func(down bool) bool { return !down })
	count("after it is mended", 0, 1)
}
