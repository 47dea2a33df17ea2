package daemon

import (
	"fmt"
	"testing"

	"weft/internal/hostsetup"
	"weft/policy"
	"weft/topology"
)

// For every policy, mode and encapsulation there is a program at the uplink that
// takes what AtUplink says it takes, or a refusal.
func TestPolicies_whoCarriesThemOut(t *testing.T) {
	cuts := map[string]bool{"auto": true, "presto": true, "flowcell-drb": true, "rand": true, "luopan": true}
	inWeft := map[string]bool{"letflow": true, "conga": true, "local": true, "drill": true, "reps": true}
	for _, name := range policy.Names() {
		for _, encapsulation := range []string{EncapIPIP, EncapSRv6} {
			text := fmt.Sprintf("policy: %s\nencapsulation: %s\n", name, encapsulation)
			c, err := parseText(text + "mode: gateway\n")
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := c.cutsAtUplink(); got != cuts[name] || c.diverts() == got {
				t.Errorf("%s: cut at the uplink %t, diverted %t; want %t", name, got, c.diverts(), cuts[name])
			}
			if got := c.uplinkPolicy().Name; inWeft[name] && got != "ecmp" || !inWeft[name] && got != name {
				t.Errorf("%s: the uplink goes by %s", name, got)
			}
			if got := c.carrier().String(); got != encapsulation {
				t.Errorf("%s is carried by %s", encapsulation, got)
			}
			flowlets := name == "letflow" || name == "conga" // in mode gateway in weft, in mode offload at the uplink
			o, err := parseText(text + "mode: offload\n")
			if (err != nil) != (inWeft[name] && !flowlets) {
				t.Errorf("mode offload, %s: error %v", name, err)
			}
			if err == nil && (o.uplinkPolicy().Name != name || o.cutsAtUplink() != (cuts[name] || flowlets) || o.numbersAtUplink() != cuts[name]) {
				t.Errorf("mode offload, %s: the uplink goes by %s, cuts %t", name, o.uplinkPolicy().Name, o.cutsAtUplink())
			}
		}
	}
}

// A host sends what leaves room for the outer header, and with labels the IPv6
// route that what comes out of the TUN takes.
func TestPlan_carriers(t *testing.T) {
	for encapsulation, mtu := range map[string]int{EncapIPIP: 1480, EncapSRv6: 1460} {
		c, err := parseText("mode: gateway\nencapsulation: " + encapsulation)
		if err != nil {
			t.Fatal(err)
		}
		self := c.fabric.Node(0).Addr
		rack := c.fabric.Node(c.fabric.EdgeOf(0)).Addr
		p, err := c.plan(place{address: self, mtu: 1500, uplink: hostsetup.Uplink{Name: "p0", Gateway: rack}})
		if err != nil {
			t.Fatal(err)
		}
		labels := 0
		for _, r := range p.Routes {
			if r.Device != "" && r.Prefix.Addr().Is4() && r.MTU != mtu {
				t.Errorf("%s: route %+v, want an MTU of %d", encapsulation, r, mtu)
			}
			if r.Gateway == topology.LinkLocal6(rack) {
				labels++
			}
		}
		if want := map[string]int{EncapSRv6: 1}[encapsulation]; labels != want {
			t.Errorf("%s: %d routes of labels, want %d: %+v", encapsulation, labels, want, p.Routes)
		}
	}
}
