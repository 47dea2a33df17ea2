package fabric

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// fourWays makes a namespace with a port p0 and four more that lead to 10.9.0.0/16.
func fourWays(t *testing.T, f func() error) {
	t.Helper()
	ns := kerneltest.Namespace(t, "balance")
	script := "ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=2\n"
	hops := ""
	for i := range 5 {
		script += fmt.Sprintf("ip link add p%d type veth peer name q%d; ip link set p%d up; ip link set q%d up\n", i, i, i, i)
		if i > 0 {
			hops += fmt.Sprintf(" nexthop via 10.1.0.%d dev p%d onlink weight %d", i, i, 1+i/4)
		}
	}
	script += "ip addr add 10.0.0.1/32 dev lo; ip route add 10.9.0.0/16" + hops + "; ip route add 10.9.7.0/24 via 10.1.0.1 dev p1 onlink"
	kerneltest.Shell(t, ns, "set -e\n"+script)
	if err := kernel.InNamespace(ns, f); err != nil {
		t.Fatal(err)
	}
}

func balanceOf(rule string) (c BalanceConfig) {
	c.Rule = rule
	for i := range 5 {
		c.Ports = append(c.Ports, MeterPort{Name: fmt.Sprintf("p%d", i), RateBits: 20e6})
	}
	return c
}

func mustPolicy(t *testing.T, want string) {
	t.Helper()
	if have, err := kernel.ReadSysctl(hashPolicy); have != want || err != nil {
		t.Errorf("%s is %s, %v, want %s", hashPolicy, have, err, want)
	}
}

// What is attached outlives who has attached it, keeps the former setting through others'
// runs, and is gone when it is detached.
func TestBalance_life(t *testing.T) {
	fourWays(t, func() error {
		for _, rule := range []string{"drill", "letflow", "rb"} { // each after a crash of the one before
			b, err := AttachBalance(balanceOf(rule))
			if err != nil {
				return err
			}
			mustPolicy(t, "1")
			if s, err := b.Stats(); err != nil || s.Destinations != 1 || s.LeftOut != 0 {
				t.Errorf("%s: %+v, %v", rule, s, err)
			}
			if err := b.Close(); err != nil {
				return err
			}
			if _, err := b.Stats(); err != errBalanceClosed {
				t.Errorf("after Close: %v", err)
			}
		}
		ports := []string{"p0", "p1", "p2", "p3", "p4", "p5"}
		if n, err := DetachBalance(ports); n != 5 || err != nil {
			t.Errorf("detached %d: %v", n, err)
		}
		mustPolicy(t, "2")
		if n, err := DetachBalance(ports); n != 0 || err != nil {
			t.Errorf("detached again %d: %v", n, err)
		}

		b, err := AttachBalance(balanceOf("drb"))
		if err != nil {
			return err
		}
		// What somebody sets meanwhile is what they get in the end.
		if _, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicy, Value: "0"}); err != nil {
			return err
		}
		mended, err := b.RepairSettings()
		if len(mended) != 1 || err != nil {
			t.Errorf("mended %q, %v", mended, err)
		}
		mustPolicy(t, "1")
		words, err := b.Descriptors()
		if err != nil {
			return err
		}
		heir, err := InheritBalance(words, balanceOf("drb"))
		if err != nil {
			return err
		}
		b.Close()
		if err := heir.Detach(); err != nil {
			t.Error(err)
		}
		mustPolicy(t, "0")
		return nil
	})
}

// The tables follow the kernel's routes and devices.
func TestBalance_follows(t *testing.T) {
	fourWays(t, func() error {
		b, err := AttachBalance(balanceOf("drill"))
		if err != nil {
			return err
		}
		defer b.Detach()
		set := func(dst string, ports ...string) {
			t.Helper()
			if _, err := b.Repair(); err != nil {
				t.Fatal(err)
			}
			var number uint32
			var s balance.Set
			err := b.in.Maps[balanceMapDestinations].Lookup(destination{32, netip.MustParseAddr(dst).As4()}, &number)
			if err == nil {
				err = b.in.Maps[balanceMapSets].Lookup(number, &s)
			}
			if err != nil && len(ports) > 0 {
				t.Fatal(dst, err)
			}
			var have []string
			for _, step := range s.Steps[:s.N] {
				link, err := netlink.LinkByIndex(int(step.Port))
				if err != nil {
					t.Fatal(err)
				}
				have = append(have, link.Attrs().Name)
			}
			if strings.Join(have, " ") != strings.Join(ports, " ") {
				t.Errorf("%s goes by %v, want %v", dst, have, ports)
			}
		}
		set("10.9.0.1", "p4", "p1", "p2", "p3", "p4")
		set("10.9.7.1")
		set("10.8.0.1")
		down, err := netlink.LinkByName("p2")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(down); err != nil {
			return err
		}
		set("10.9.0.1", "p4", "p1", "p3", "p4")
		if err := netlink.LinkDel(down); err != nil {
			return err
		}
		set("10.9.0.1") // the kernel has removed the route with the device
		fresh := netlink.NewVeth(netlink.NewLinkAttrs())
		fresh.Name, fresh.PeerName = "p2", "q2"
		if err := netlink.LinkAdd(fresh); err != nil {
			return err
		}
		mended, err := b.Repair()
		if err != nil || len(mended) != 2 {
			t.Errorf("a new device: %q, %v", mended, err)
		}
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		if s, err := ReadBalance(h, b.links); err != nil || s == nil || s.Destinations != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		return RefreshBalance([]string{"p0", "p1"})
	})
}

func TestAttachBalance_errors(t *testing.T) {
	fourWays(t, func() error {
		for want, c := range map[string]BalanceConfig{
			"no rule":              balanceOf("spray"),
			"nothing is attached":  balanceOf("ecmp"),
			"Ports has 0 ports":    {Rule: "rb"},
			"a Name is empty":      {Rule: "rb", Ports: []MeterPort{{}}},
			"none of the ports":    {Rule: "rb", Ports: []MeterPort{{Name: "p7"}}},
			"port lo: frames":      {Rule: "rb", Ports: []MeterPort{{Name: "lo"}}},
			"p0\": RateBits is 1,": {Rule: "drill", Ports: []MeterPort{{Name: "p0", RateBits: 1}}},
		} {
			if b, err := AttachBalance(c); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "port p0: ", "p0\": "), want) {
				t.Errorf("%s: %v, %v", want, b, err)
			}
		}
		mustPolicy(t, "2")
		return nil
	})
}

// With more different sets than there is room for, those that are left out go by the
// kernel's routes, and the others keep their numbers.
func TestTablesOf_noRoom(t *testing.T) {
	routes := make(map[netip.Prefix][]balance.Hop)
	prefix := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i)}), 24)
	}
	for i := range 300 {
		routes[prefix(i)] = []balance.Hop{{Port: 1, Weight: 1}, {Port: uint32(2 + i), Weight: 1}}
	}
	have := make([]balance.Set, maxBalanceSets)
	// Too many next hops are no set, and count once.
	wide := netip.MustParsePrefix("10.200.0.0/16")
	routes[wide] = make([]balance.Hop, balance.MaxSteps+1)
	if table, _, f := tablesOf(routes, have); f != (filled{destinations: 301, leftOut: 301 - 255}) || len(table) != 255 {
		t.Errorf("%+v, %d in the table", f, len(table))
	}
	clear(have)
	delete(routes, wide)

	// Within a default route, those without room, and those with one way, have no set.
	all := maps.Clone(routes)
	all[netip.MustParsePrefix("0.0.0.0/0")] = []balance.Hop{{Port: 1000, Weight: 1}, {Port: 1001, Weight: 1}}
	all[prefix(500)] = nil
	table, _, f := tablesOf(all, have)
	if f != (filled{destinations: 301, leftOut: 301 - 255}) || len(table) != 302 {
		t.Errorf("%+v, %d in the table", f, len(table))
	}
	none := 0
	for _, n := range table {
		if n == noSet {
			none++
		}
	}
	if n, ok := table[prefix(500)]; none != 301-255+1 || !ok || n != noSet {
		t.Errorf("%d without a set; one way has %d, %v", none, n, ok)
	}
	clear(have)

	table, changed, f := tablesOf(routes, have)
	if f != (filled{destinations: 300, leftOut: 300 - 255}) || len(table) != 255 || len(changed) != 255 {
		t.Fatalf("%+v, %d in the table, %d sets changed", f, len(table), len(changed))
	}
	if again, changed, _ := tablesOf(routes, have); len(changed) != 0 || len(again) != 255 {
		t.Errorf("the same again: %d changed, %d in the table", len(changed), len(again))
	}
	for i := range 200 {
		delete(routes, prefix(i))
	}
	less, changed, f := tablesOf(routes, have)
	if f != (filled{destinations: 100}) || len(changed) != 45 {
		t.Errorf("%+v, %d changed", f, len(changed))
	}
	for k, n := range less {
		if was, ok := table[k]; ok && was != n {
			t.Errorf("%v has moved from set %d to %d", k, was, n)
		}
		if s := have[n]; s.N != 2 || have[noSet].N != 0 {
			t.Errorf("%v: %d steps", k, s.N)
		}
	}
}

// Many routes with one way cost no sets.
func TestTablesOf_oneWay(t *testing.T) {
	routes := make(map[netip.Prefix][]balance.Hop)
	for i := range 20_000 {
		routes[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i)}), 24)] = nil
	}
	have := make([]balance.Set, maxBalanceSets)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	table, _, f := tablesOf(routes, have)
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 || len(table) != 0 || f != (filled{}) {
		t.Errorf("%d bytes for prefixes that nobody asks for; %+v, %d in the table", bytes, f, len(table))
	}
}
