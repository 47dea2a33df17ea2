package daemon

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weft/internal/hostprog"
	"weft/internal/hostsetup"
)

// What is behind hosts has routes, a host to be probed and a line in the status.
func TestParse_behind(t *testing.T) {
	c, err := parseText("behind: [{prefixes: [10.244.0.0/24, 10.0.0.64/26]}, {host: 10.1.0.2, prefixes: [10.244.1.0/24]}, {host: 10.0.0.3, prefixes: [10.244.2.0/24]}]")
	if err != nil {
		t.Fatal(err)
	}
	p := place{address: netip.MustParseAddr("10.0.0.2"), uplink: hostsetup.Uplink{Name: "eth0"}, mtu: 1500}
	if got := fmt.Sprint(c.behindHere(p)); got != "[10.244.0.0/24 10.0.0.64/26]" {
		t.Errorf("behind this host: %s", got)
	}
	host := c.hostOf(p)
	for a, want := range map[string]string{"10.244.1.9": "10.1.0.2", "10.0.0.65": "10.0.0.2", "10.0.0.5": "10.0.0.5", "10.244.2.1": "10.0.0.3"} {
		if got := host(netip.MustParseAddr(a)); got.String() != want {
			t.Errorf("%s is behind %v, want %s", a, got, want)
		}
	}
	plan, err := c.plan(p)
	if err != nil {
		t.Fatal(err)
	}
	into := make(map[string]string)
	for _, r := range plan.Routes {
		into[r.Prefix.String()] = r.Device
	}
	for prefix, want := range map[string]string{"10.244.1.0/24": "eth0", "10.244.0.0/24": "", "10.0.0.64/26": "", "10.244.2.0/24": ""} {
		if got, ok := into[prefix]; !ok || got != want {
			t.Errorf("%s: a route to %q, %t, want %q", prefix, got, ok, want)
		}
	}
	if list, _ := c.behindStatus(p); len(list) != 4 || !list[0].Own || list[2].Own || list[2].Rack != "e1.0" {
		t.Errorf("status %+v", list)
	}
}

// What is forwarded is cut once the kernel forwards, also if that began while the uplink was down
// or the kernel refused.
func TestCutForwarded_whenTheKernelForwards(t *testing.T) {
	w := newAutoWorld(t, "mode: offload\npolicy: drb\nreceivers_resequence: true\n")
	cuts := func(want bool, when string) {
		t.Helper()
		for range 3 {
			w.tick()
		}
		if got := w.program.config.CutForwarded; got != want {
			t.Errorf("%s: cut %t\n%s", when, got, w.log.String())
		}
	}
	cuts(false, "at first")
	w.down, w.forwards = true, true
	cuts(false, "while the uplink is down")
	w.down, w.refuse = false, 1
	w.tick()
	w.refuse = 0
	cuts(true, "when all is right again")
	w.forwards = false
	cuts(false, "when the kernel forwards no more")
}

// A prefix is behind one host, whether the graph or the list says so.
func TestCheckBehind_andTheGraph(t *testing.T) {
	prefix, host := netip.MustParsePrefix, netip.MustParseAddr
	for _, c := range []struct {
		prefix, host, says string
	}{
		{"10.244.0.0/24", "10.0.0.2", "10.244.0.0/24: the topology says that 10.244.0.0/24 is behind 10.0.0.2"},
		{"10.244.0.128/25", "10.1.0.2", "is behind 10.0.0.2; one prefix is behind one host"},
		{"10.244.0.0/16", "10.1.0.2", "is behind 10.0.0.2"},
		{"10.244.0.128/25", "10.0.0.2", ""},
		{"10.244.1.0/24", "10.1.0.2", ""},
	} {
		conf := parsed(t, "policy: drb\n")
		conf.inGraph = []hostprog.Behind{{Prefix: prefix("10.244.0.0/24"), Host: host("10.0.0.2")}}
		conf.Behind = []Behind{{Host: host(c.host), Prefixes: []netip.Prefix{prefix(c.prefix)}}}
		switch err := conf.checkBehind(); {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
