package bgp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weft/topology/graph"
)

var leaf = netip.MustParseAddr("192.168.1.1")

var self = Host{Name: "h1", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.2")}}

// newTable is that of a host whose switch is AS 65101.
func newTable() *Table { return NewTable(Config{Neighbors: map[netip.Addr]uint32{leaf: 65101}}) }

// table reads lines of a prefix, an ID and an AS path.
func table(t *testing.T, lines string) *Table {
	t.Helper()
	tab := newTable()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		k, r := routeOf(t, line)
		tab.Set(k, r)
	}
	return tab
}

func routeOf(t *testing.T, line string) (Key, Route) {
	t.Helper()
	words := strings.Fields(line)
	numbers := make([]uint32, len(words)-1)
	for i, w := range words[1:] {
		for _, c := range w {
			numbers[i] = 10*numbers[i] + uint32(c-'0')
		}
	}
	return Key{leaf, netip.MustParsePrefix(words[0]), numbers[0]}, Route{ASPath: numbers[1:]}
}

// prototype is what FRR's leaf sends a host in a fabric of two leaves and two spines.
const prototype = `
192.168.1.0/24 1 65101
192.168.2.0/24 1 65101 65001 65102
192.168.2.0/24 2 65101 65002 65102
172.16.0.1/32 1 65101 65001
172.16.0.2/32 1 65101 65002
172.16.0.2/32 2 65101 65001 65102 65002
10.0.0.0/31 1 65101 65001
`

const prototypeGraph = `nodes:
  h1: {addresses: [192.168.1.2]}
  as65101: {tier: 1, prefixes: [192.168.1.0/24], as: 65101}
  as65102: {tier: 1, prefixes: [192.168.2.0/24], as: 65102}
  as65001: {tier: 2, addresses: [172.16.0.1], as: 65001}
  as65002: {tier: 2, addresses: [172.16.0.2], as: 65002}
links:
  - {ends: [h1, as65101]}
  - {ends: [as65101, as65001]}
  - {ends: [as65101, as65002]}
  - {ends: [as65102, as65001]}
  - {ends: [as65102, as65002]}
`

func text(t *testing.T, tab *Table) (graphText, guesses string) {
	t.Helper()
	s, list := tab.Spec(self)
	g, err := graph.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(g.Text()), strings.Join(list, "\n")
}

func TestSpec_prototype(t *testing.T) {
	tab := table(t, prototype)
	got, guesses := text(t, tab)
	if got != prototypeGraph || guesses != "" {
		t.Errorf("%s\n%s", got, guesses)
	}
	// The link from spine 1 to leaf 2 fails; the spine may now know a way through racks.
	k, _ := routeOf(t, "192.168.2.0/24 1 0")
	tab.Withdraw(k)
	k, _ = routeOf(t, "172.16.0.2/32 2 0")
	tab.Withdraw(k)
	got, _ = text(t, tab)
	if want := strings.Replace(prototypeGraph, "  - {ends: [as65102, as65001]}\n", "", 1); got != want {
		t.Errorf("%s", got)
	}
	tab.Stale(leaf)
	if again, _ := text(t, tab); again != got {
		t.Errorf("without a session\n%s", again)
	}
	tab.Sweep(leaf)
	if got, _ = text(t, table(t, "10.0.0.0/8 1 65101")); tab.Len() != 0 || !strings.Contains(got, "as65101") {
		t.Errorf("%d routes", tab.Len())
	}
}

func TestSpec_odd(t *testing.T) {
	for _, c := range []struct{ name, routes, want, guess string }{
		{"spines of one AS", "192.168.2.0/24 1 65101 65001 65102\n192.168.2.0/24 2 65101 65001 65102\n172.16.0.1/32 1 65101 65001\n172.16.0.2/32 1 65101 65001\n2001:db8::1/128 1 65101 65001\n2001:db8::2/128 1 65101 65001",
			`  as65001-2: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65001}`, "AS 65001 is that of 2 switches"},
		{"several addresses of one", "192.168.2.0/24 1 65101 65001 65102\n172.16.0.1/32 1 65101 65001\n172.16.0.9/32 1 65101 65001",
			`  as65001: {tier: 2, addresses: [172.16.0.1, 172.16.0.9], as: 65001}`, ""},
		{"prepended", "192.168.2.0/24 1 65101 65101 65101 65001 65102\n172.16.0.1/32 1 65101 65001", "{ends: [as65102, as65001]}", ""},
		{"no address", "192.168.2.0/24 1 65101 65001 65102", "  as65102: {tier: 1", "AS 65001 announces no address of its own"},
		{"own prefix from afar", prototype + "192.168.1.0/25 1 65101 65001 65102", "prefixes: [192.168.2.0/24]", "192.168.1.0/25 of AS 65102 has this host's own address"},
		{"a more specific of another's rack", prototype + "192.168.2.128/25 1 65101 65002 65103", "prefixes: [192.168.2.0/24]", "192.168.2.128/25 of AS 65103 lies within 192.168.2.0/24 of AS 65102"},
		{"two leaves of a rack", prototype + "192.168.2.0/24 3 65101 65002 65103\n192.168.2.0/24 4 65101 65001 65103\n192.168.2.7/32 1 65101 65001 65102\n192.168.2.7/32 2 65101 65002 65103",
			"  others1: {}\n  as65101: {tier: 1, prefixes: [192.168.1.0/24], as: 65101}\n  as65102: {tier: 1, prefixes: [192.168.2.0/24], as: 65102}\n  as65103: {tier: 1, prefixes: [192.168.2.0/24], as: 65103}", ""},
		{"another leaf of the own rack", prototype + "192.168.1.0/24 3 65101 65002 65103\n192.168.1.0/24 4 65101 65001 65103", "  as65103: {tier: 1, prefixes: [192.168.1.0/24], as: 65103}", ""},
		{"a second leaf of which one switch tells", prototype + "192.168.2.0/24 3 65101 65002 65103", "prefixes: [192.168.2.0/24], as: 65102", "192.168.2.0/24 is announced by AS 65102 and AS 65103; it is taken for the former's"},
		{"a spine's aggregate", prototype + "10.0.0.0/8 1 65101 65001", "  as65001: {tier: 2", "AS 65001 passes on what others announce"},
	} {
		got, guesses := text(t, table(t, c.routes))
		if !strings.Contains(got, c.want) || !strings.Contains(guesses, c.guess) || c.guess == "" && guesses != "" {
			t.Errorf("%s: %s\n%s", c.name, got, guesses)
		}
	}
}

// A route that is not taken is counted by the reason, and replaces the one before.
func TestTable_refuses(t *testing.T) {
	long := []uint32{65101, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		prefix string
		route  Route
		want   Refused
	}{
		{"0.0.0.0/0", Route{ASPath: long[:2]}, Refused{Default: 1}},
		{"128.0.0.0/1", Route{ASPath: long[:2]}, Refused{Default: 1}},
		{"::/0", Route{ASPath: long[:2]}, Refused{Default: 1}},
		{"2000::/3", Route{ASPath: long[:2]}, Refused{Default: 1}},
		{"127.0.0.1/32", Route{ASPath: long[:2]}, Refused{Unusable: 1}},
		{"224.0.0.0/24", Route{ASPath: long[:2]}, Refused{Unusable: 1}},
		{"fe80::/64", Route{ASPath: long[:2]}, Refused{Unusable: 1}},
		{"10.0.0.0/8", Route{}, Refused{NoPath: 1}},
		{"10.0.0.0/8", Route{ASPath: long[:2], Merged: true}, Refused{Merged: 1}},
		{"10.0.0.0/8", Route{ASPath: long[1:3]}, Refused{FirstAS: 1}},
		{"10.0.0.0/8", Route{ASPath: []uint32{65101, 65001, 65101}}, Refused{Loop: 1}},
		{"10.0.0.0/8", Route{ASPath: []uint32{65101, 65001, 4200000001}}, Refused{Loop: 1}},
		{"10.0.0.0/8", Route{ASPath: long}, Refused{TooLong: 1}},
		{"10.0.0.0/8", Route{ASPath: slices.Repeat(long, 1000)}, Refused{TooLong: 1}},
	} {
		tab := NewTable(Config{AS: 4200000001, Neighbors: map[netip.Addr]uint32{leaf: 65101}})
		k := Key{leaf, netip.MustParsePrefix(c.prefix), 7}
		tab.prefixes[k.Prefix] = nil
		tab.Set(k, c.route)
		if tab.Refused() != c.want || tab.Len() != 0 {
			t.Errorf("%s %+v: refused %+v, want %+v", c.prefix, c.route, tab.Refused(), c.want)
		}
		good := Key{leaf, netip.MustParsePrefix("10.0.0.0/8"), 7}
		tab.Set(good, Route{ASPath: long[:1]})
		if tab.Set(good, c.route); good.Prefix == k.Prefix && tab.Len() != 0 {
			t.Errorf("%+v: the route before is still there", c.route)
		}
	}
}

// A neighbour has its part of the routes, and a part of those to one prefix.
func TestTable_isBounded(t *testing.T) {
	other := netip.MustParseAddr("192.168.1.9")
	tab := NewTable(Config{Neighbors: map[netip.Addr]uint32{leaf: 65101, other: 65109}})
	prefix := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range MaxRoutes {
		tab.Set(Key{leaf, prefix(i), 0}, Route{ASPath: []uint32{65101}})
		tab.Set(Key{leaf, prefix(0), uint32(i)}, Route{ASPath: []uint32{65101}})
	}
	if r := tab.Refused(); tab.Len() != MaxRoutes/2 || r.NoPlace == 0 || r.ManyWays == 0 || r.NoPlace+r.ManyWays+MaxRoutes/2+1 != 2*MaxRoutes {
		t.Errorf("%d routes, %+v", tab.Len(), r)
	}
	tab.Set(Key{other, prefix(0), 0}, Route{ASPath: []uint32{65109}})
	if tab.Routes(other) != 1 || waysOf(tab.prefixes[prefix(0)], leaf) != maxWays {
		t.Errorf("%d routes of the other, %d ways", tab.Routes(other), waysOf(tab.prefixes[prefix(0)], leaf))
	}
	tab.Stale(leaf)
	tab.Set(Key{leaf, prefix(5), 0}, Route{ASPath: []uint32{65101}})
	if tab.Sweep(leaf); tab.Routes(leaf) != 1 {
		t.Errorf("%d routes are left that were set again", tab.Routes(leaf))
	}
	tab.Stale(leaf)
	tab.Sweep(leaf)
	if tab.Len() != 1 || len(tab.prefixes) != 1 || len(tab.paths) != 1 || tab.Routes(leaf) != 0 {
		t.Errorf("dropped: %d routes, %d prefixes, %d paths", tab.Len(), len(tab.prefixes), len(tab.paths))
	}
}

// The Table has what a map has, and says when that changes.
func TestTable_isAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	tab, oracle := newTable(), make(map[Key]string)
	for range 20_000 {
		k := Key{leaf, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(4))}), 16+r.IntN(2)*8), uint32(r.IntN(3))}
		was, version := oracle[k], tab.Version()
		if r.IntN(3) == 0 {
			tab.Withdraw(k)
			delete(oracle, k)
		} else {
			path := []uint32{65101, uint32(r.IntN(3)), 9}[:1+r.IntN(3)]
			tab.Set(k, Route{ASPath: path, Rate: float64(len(path))})
			oracle[k] = fmt.Sprint(path)
		}
		if (tab.Version() == version) != (was == oracle[k]) {
			t.Fatalf("%v was %q and is %q; the version changed: %t", k, was, oracle[k], tab.Version() != version)
		}
	}
	got := make(map[Key]string)
	for p, list := range tab.prefixes {
		for _, r := range list {
			got[Key{r.neighbor, p, r.id}] = fmt.Sprint(r.path.list)
		}
	}
	if !maps.Equal(got, oracle) || tab.Len() != len(oracle) {
		t.Errorf("%v\nwant\n%v", got, oracle)
	}
}
