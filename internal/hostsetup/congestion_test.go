package hostsetup

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Each route to a destination that has the congestion control names it, and where a larger
// one is not to, a smaller one is added; the host's own rack is left to the kernel.
func TestPlanHost_congestion(t *testing.T) {
	offload := gatewayOptions()
	offload.TUN = ""
	six := offload
	six.Six = sixOptions()
	narrow := offload
	narrow.Narrow = map[netip.Prefix]int{netip.MustParsePrefix("10.1.0.0/24"): 1300}
	const out = " table 5741 proto 87 via 10.0.0.1 dev p0 onlink src 10.0.0.2 mtu "
	for name, c := range map[string]struct {
		o    Options
		to   []netip.Prefix
		want []string
	}{
		"all": {six, nil, []string{
			"10.0.0.0/14" + out + "1480 congctl x",
			"throw 10.0.0.0/24 table 5741 proto 87",
			"2001:db8:0:2::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1460 congctl x",
			"2001:db8:0:3::/64 table 5741 proto 87 via fe80::1 dev p0 onlink mtu 1460 congctl x",
			"throw 2001:db8:0:1::/64 table 5741 proto 87",
		}},
		"some": {narrow, prefixes("10.1.0.0/16", "10.1.0.7/32", "10.2.0.0/24", "10.1.0.0/16", "10.0.0.9/32", "10.9.0.0/16"), []string{
			"10.0.0.0/14" + out + "1480",
			"10.1.0.0/24" + out + "1300 congctl x",
			"throw 10.0.0.0/24 table 5741 proto 87",
			"10.1.0.0/16" + out + "1480 congctl x",
			"10.1.0.7/32" + out + "1300 congctl x",
			"10.2.0.0/24" + out + "1480 congctl x",
		}},
		"more than all": {offload, prefixes("10.0.0.0/8"), []string{
			"10.0.0.0/14" + out + "1480 congctl x",
			"throw 10.0.0.0/24 table 5741 proto 87",
		}},
		"a pod with the own rack": {offload, prefixes("10.0.0.0/16"), []string{
			"10.0.0.0/14" + out + "1480",
			"throw 10.0.0.0/24 table 5741 proto 87",
			"10.0.0.0/16" + out + "1480 congctl x",
		}},
		"tunnel": {tunnelOptions(), nil, []string{
			"10.9.0.0/24 table 5740 proto 87 dev weft0 congctl x",
			"fd00:9::/64 table 5740 proto 87 dev weft0 congctl x",
		}},
	} {
		c.o.Congestion = Congestion{"x", c.to}
		p, err := PlanFor(c.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range p.Commands() {
			if route, ok := strings.CutPrefix(line, "ip route replace "); ok {
				got = append(got, route)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		c.o.Congestion.Control = ""
		if p, err = PlanFor(c.o); err != nil || strings.Contains(fmt.Sprint(p.Commands()), "congctl") {
			t.Errorf("%s: %v without: %v", name, err, p.Commands())
		}
	}
}
