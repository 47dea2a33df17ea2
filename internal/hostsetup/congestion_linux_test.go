package hostsetup

import (
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
)

// The kernel has the congestion control in weft's routes, of both families; what others
// change about that is repaired, and nothing stays.
func TestApplyHost_congestion(t *testing.T) {
	ns := hostNamespace(t, "cc")
	before := configuration(t, ns)
	o := gatewayOptions()
	o.Six, o.TUN6 = sixOptions(), true
	o.Congestion = Congestion{Control: "cubic"}
	p, err := PlanFor(o)
	if err != nil {
		t.Fatal(err)
	}
	s := applyHost(t, ns, p)
	routes := func() int {
		return strings.Count(kerneltest.Shell(t, ns, "ip -4 route show table all; ip -6 route show table all"), " congctl cubic")
	}
	if got := routes(); got != 6 { // of three prefixes, in two tables
		t.Errorf("%d routes have it, want 6:\n%s", got, kerneltest.Shell(t, ns, "ip route show table all"))
	}
	kerneltest.Shell(t, ns, `ip route replace 10.0.0.0/14 table 5741 proto 87 via 10.0.0.1 dev p0 onlink src 10.0.0.2 mtu 1480
		ip -6 route change 2001:db8:0:2::/64 table 5740 proto 87 dev weft0 mtu 1460 congctl reno`)
	in(t, ns, func() error {
		mended, err := s.Repair(p)
		if len(mended) != 2 || !strings.Contains(mended[0]+mended[1], "another one: replaced") {
			t.Errorf("mended %q", mended)
		}
		if again, _ := s.Repair(p); len(again) != 0 {
			t.Errorf("mended again: %q", again)
		}
		return err
	})
	if got := routes(); got != 6 {
		t.Errorf("%d routes have it after the repair", got)
	}
	o.Congestion.Control = "nosuch"
	if p, err = PlanFor(o); err != nil {
		t.Fatal(err)
	}
	in(t, ns, func() error {
		if err := s.Update(p); err == nil || !strings.Contains(err.Error(), "the congestion control nosuch?") {
			t.Errorf("unknown: %v", err)
		}
		return nil
	})
	in(t, ns, s.Restore)
	differ(t, "the configuration", before, configuration(t, ns))
}
