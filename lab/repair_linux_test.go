package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// Up mends whatever somebody has done to a lab, says so, keeps what was made to fail,
// and has nothing to do afterwards.
func TestUp_repairs(t *testing.T) {
	slowtest.System(t)
	for _, srv6 := range []bool{false, true} {
		cfg := Config{Topology: kerneltest.Topology(t, "fat-tree:k=4"), Meter: &Meter{}, SRv6: srv6}
		l := upLab(t, cfg)
		mustFail(t, l, "a1.2-c1.1", FailLoud)
		mustFail(t, l, "e1.0-a1.3", FailSilent)
		again := func() []string {
			t.Helper()
			l := upLab(t, cfg)
			if !l.Reused {
				t.Fatal("built the lab anew")
			}
			return l.Repaired
		}
		if did := again(); len(did) > 0 {
			t.Fatalf("a sound lab: repaired %q", did)
		}
		namespace := func(node string) string { return l.Config.namespace(node) }
		for _, d := range []struct {
			node, damage string
			says         []string
		}{
			{"e0.0", "ip link del p0", []string{"h0.0.2-e0.0: made the link again", "e0.0: put back rate and queue of p0", "e0.0: put back the neighbour of p0"}},
			{"a0.2", "ip link set p0 down; ip link set p0 name x0", []string{"e0.0-a0.2: made the link again"}},
			{"a0.2", "ip route flush proto 87", []string{"a0.2: put back routes"}},
			{"a0.3", "ip link set p1 down", []string{"a0.3: set p1 up"}},
			{"c1.1", "sysctl -w net.ipv4.conf.all.rp_filter=1", []string{"3.0: set net.ipv4.conf.all.rp_filter to 0, which was 1"}},
			{"e2.0", "tc qdisc del dev p2 root", []string{"e2.0: put back rate and queue of p2"}},
			{"e2.1", "ip link set p2 mtu 1400", []string{"e2.1: put back the MTU 1500 of p2"}},
			{"e3.1", "ip neigh flush dev p2 nud permanent", []string{"e3.1: put back the neighbour of p2"}},
			{"h3.1.3", "sysctl -w net.ipv4.tcp_rmem='4096 4096 4096'; ip addr flush dev p0", []string{"h3.1.3: put back addresses of p0", "h3.1.3: set net.ipv4.tcp_rmem to 4096 131072 6291456"}},
			{"c1.1", "ip link set p1 up", []string{"a1.2-c1.1: made it fail again (loud)"}},
		} {
			node := strings.Replace(d.node, "c1.1", nodePlan(t, cfg.Topology, "c1.1").Node, 1)
			kerneltest.Shell(t, namespace(node), d.damage)
			did := again()
			for _, want := range d.says {
				want = strings.Replace(want, "3.0: set", node+": set", 1)
				if !slices.ContainsFunc(did, func(s string) bool { return strings.HasPrefix(s, want) }) {
					t.Errorf("srv6 %v: after %s: repaired %q, want %q", srv6, d.damage, did, want)
				}
			}
			if did := again(); len(did) > 0 {
				t.Errorf("srv6 %v: after %s, once more: repaired %q", srv6, d.damage, did)
			}
		}
		for place, want := range map[kernel.Filter]string{
			kernel.DecapFilter:  "a2.2: put back the decapsulation of IP-in-IP",
			kernel.MeterFilter:  "a2.2: put back meters",
			kernel.SilentFilter: "e1.0-a1.3: made it fail again (silent)",
		} {
			node := "a2.2"
			if place == kernel.SilentFilter {
				node = "e1.0"
			}
			n, err := cfg.Topology.Lookup(node)
			if err != nil {
				t.Fatal(err)
			}
			err = l.Do(n.ID, func() error {
				plan := nodePlan(t, cfg.Topology, node)
				h, err := netlink.NewHandle(kernel.Families...)
				if err != nil {
					return err
				}
				defer h.Close()
				links, err := kernel.Links(h, portNames(plan))
				if err == nil {
					_, err = place.DetachAll(h, links)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if did := again(); !slices.ContainsFunc(did, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("srv6 %v: repaired %q, want %q", srv6, did, want)
			}
		}
		mustHeal(t, l)
		if did := again(); len(did) > 0 {
			t.Errorf("srv6 %v: healed: repaired %q", srv6, did)
		}
		if _, err := Down(l.Config.Name); err != nil {
			t.Fatal(err)
		}
	}
}
