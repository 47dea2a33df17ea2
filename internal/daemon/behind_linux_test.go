package daemon

import (
	"fmt"
	"net/netip"
	"testing"

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
