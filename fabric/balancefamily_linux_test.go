package fabric

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A kernel without IPv6 answers the question for its routes with those of all families. None
// of these is taken for one of the family.
func TestOfFamily(t *testing.T) {
	ns := kerneltest.Namespace(t, "family")
	kerneltest.Shell(t, ns, `set -e; ip link set lo up
ip link add p0 type veth peer name q0; ip link set p0 up; ip link set q0 up
ip addr add 10.9.0.1/24 dev p0; ip -6 addr add fd09::1/64 dev p0 nodad
ip route add default via 10.9.0.2; ip -6 route add fd0a::/64 via fd09::2`)
	err := kernel.InNamespace(ns, func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		for family, want := range map[int]netip.Prefix{
			netlink.FAMILY_V4: netip.MustParsePrefix("10.9.0.0/24"),
			netlink.FAMILY_V6: netip.MustParsePrefix("fd0a::/64"),
		} {
			all, err := kernel.Dumped(func() ([]netlink.Route, error) {
				return h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{}, 0)
			})
			if err != nil {
				return err
			}
			n, seen := len(all), false
			for _, r := range ofFamily(all, family) {
				n--
				if r.Family != family {
					t.Errorf("%v is of family %d, want %d", r, r.Family, family)
				}
				seen = seen || r.Dst != nil && r.Dst.String() == want.String()
			}
			if !seen || n == 0 {
				t.Errorf("family %d: it has %v: %v, %d others", family, want, seen, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
