package discover

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/topology/graph"
)

// Found is a graph in the making.
type Found struct {
	Spec    graph.Spec
	Guesses []string // a line each
}

func (f *Found) guess(format string, args ...any) {
	f.Guesses = append(f.Guesses, fmt.Sprintf(format, args...))
}

// unknown is the tier of a node of which none is known.
const unknown = -1

// words say in names and groups what a node is.
var words = map[string]int{
	"superspine": 3, "core": 3,
	"spine": 2, "agg": 2, "aggregation": 2,
	"leaf": 1, "tor": 1, "edge": 1,
	"server": 0, "srv": 0, "client": 0, "host": 0, "compute": 0, "gpu": 0,
}

// hint returns the tier that the words in a name stand for, or unknown. A super-spine is no
// spine.
func hint(s string) int {
	parts := strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return c < 'a' || c > 'z' })
	for i, part := range parts {
		if part == "super" && i+1 < len(parts) {
			part += parts[i+1]
		}
		if tier, ok := words[part]; ok {
			return tier
		}
	}
	return unknown
}

// guessTiers gives tiers to nodes that have none: by the words in their names, 0 to those
// with one link, and to the rest the number of links to the next host.
func (f *Found) guessTiers() {
	nodes := f.Spec.Nodes
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.Name] = i
	}
	peers := make([][]int, len(nodes))
	for _, l := range f.Spec.Links {
		a, okA := at[l.Ends[0]]
		b, okB := at[l.Ends[1]]
		if okA && okB {
			peers[a], peers[b] = append(peers[a], b), append(peers[b], a)
		}
	}
	var guessed [graph.MaxTier + 1][]string
	set := func(i, tier int) {
		nodes[i].Tier = tier
		guessed[tier] = append(guessed[tier], nodes[i].Name)
	}
	left := 0
	for i := range nodes {
		if nodes[i].Tier != unknown {
			continue
		}
		if tier := hint(nodes[i].Name); tier != unknown {
			set(i, tier)
		} else if len(peers[i]) == 1 {
			set(i, 0)
		} else {
			left++
		}
	}
	for tier := 1; left > 0 && tier <= graph.MaxTier; tier++ {
		for i := range nodes {
			below := func(p int) bool { return nodes[p].Tier == tier-1 }
			if nodes[i].Tier == unknown && slices.ContainsFunc(peers[i], below) {
				set(i, tier)
				left--
			}
		}
	}
	for tier, names := range guessed {
		if len(names) > 0 {
			f.guess("tier %d of %s", tier, strings.Join(names, ", "))
		}
	}
}

// guessAddresses gives addresses to what has no list of them, not even an empty one: to switch number n of tier T
// 172.(15+T).(n div 256).(n mod 256), to edge switch n the rack 10.(n div 256).(n mod
// 256).0/24, to its hosts addresses there.
func (f *Found) guessAddresses() {
	var switches, racks, hosts []string
	count := make(map[int]int)
	taken := make(map[netip.Addr]bool)
	for _, n := range f.Spec.Nodes {
		for _, a := range n.Addresses {
			taken[a] = true
		}
	}
	rack := make(map[string]netip.Prefix)
	for i := range f.Spec.Nodes {
		n := &f.Spec.Nodes[i]
		if n.Tier < 1 {
			continue
		}
		at := func(k int) netip.Addr {
			return netip.AddrFrom4([4]byte{172, byte(15 + n.Tier), byte((k + 1) >> 8), byte(k + 1)})
		}
		for n.Addresses == nil && taken[at(count[n.Tier])] {
			count[n.Tier]++
		}
		k := count[n.Tier]
		count[n.Tier]++
		if n.Addresses == nil {
			n.Addresses = []netip.Addr{at(k)}
			switches = append(switches, n.Name)
		}
		if n.Tier == 1 && n.Prefixes == nil {
			n.Prefixes = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k >> 8), byte(k), 0}), 24)}
			racks = append(racks, n.Name)
			rack[n.Name] = n.Prefixes[0]
		}
	}
	edge := make(map[string]string)
	for _, l := range f.Spec.Links {
		for k, name := range l.Ends {
			if _, ok := edge[name]; !ok {
				edge[name] = l.Ends[1-k]
			}
		}
	}
	used := make(map[string]int)
	for i := range f.Spec.Nodes {
		n := &f.Spec.Nodes[i]
		p, ok := rack[edge[n.Name]]
		if n.Tier != 0 || n.Addresses != nil || !ok || used[edge[n.Name]] > 250 {
			continue
		}
		used[edge[n.Name]]++
		a := p.Addr().As4()
		a[3] = byte(1 + used[edge[n.Name]])
		n.Addresses = []netip.Addr{netip.AddrFrom4(a)}
		hosts = append(hosts, n.Name)
	}
	for _, g := range []struct {
		what  string
		names []string
	}{{"addresses of", switches}, {"racks of", racks}, {"addresses of", hosts}} {
		if len(g.names) > 0 {
			f.guess("%s %s", g.what, strings.Join(g.names, ", "))
		}
	}
}
