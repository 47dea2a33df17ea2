package hostsetup

import (
	"net/netip"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
)

func TestFindHost(t *testing.T) {
	ns := hostNamespace(t, "find")
	top := kerneltest.Topology(t, "fat-tree:k=4")
	core := netip.MustParseAddr("10.4.1.1")
	in(t, ns, func() error {
		addr, err := FindHost(top)
		if err != nil || addr != netip.MustParseAddr("10.0.0.2") {
			t.Errorf("FindHost: %v, %v", addr, err)
		}
		u, err := FindUplink(core, "")
		want := Uplink{Name: "p0", Index: u.Index, Up: true, Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1500, Strict: true, Advertised: true}
		if err != nil || u != want || u.Index == 0 {
			t.Errorf("FindUplink: %+v, %v; want %+v", u, err, want)
		}
		if _, err := FindUplink(core, "nosuch0"); err == nil || !strings.Contains(err.Error(), "nosuch0") {
			t.Errorf("FindUplink(nosuch0): %v", err)
		}
		return nil
	})
	kerneltest.Shell(t, ns, "ip address add 10.1.0.2/32 dev p0")
	in(t, ns, func() error {
		if _, err := FindHost(top); err == nil || !strings.Contains(err.Error(), "10.0.0.2 and 10.1.0.2 are both hosts") {
			t.Errorf("FindHost with two: %v", err)
		}
		return nil
	})
	in(t, kerneltest.Namespace(t, "find2"), func() error {
		if _, err := FindHost(top); err == nil || !strings.Contains(err.Error(), "no address here is a host's") {
			t.Errorf("FindHost with none: %v", err)
		}
		if _, err := FindUplink(core, ""); err == nil || !strings.Contains(err.Error(), "no route to 10.4.1.1") {
			t.Errorf("FindUplink with none: %v", err)
		}
		return nil
	})
}
