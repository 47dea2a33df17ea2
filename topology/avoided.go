package topology

import (
	"cmp"
	"net/netip"
	"slices"
)

// Avoided is a path between two hosts that is out of use for that pair alone. Its links
// are up, but one of the two hosts has evidence against it, and no other host has.
type Avoided struct {
	Src  NodeID
	Dst  netip.Addr // a host, see HostAt
	Path int        // its number in PathSet
}

// avoidance is the paths that a Topology avoids. It never changes.
type avoidance struct {
	list []Avoided         // ascending, each once
	by   map[pair][2]int32 // places in list, from and to
}

// pair is two hosts.
type pair struct {
	src NodeID
	dst netip.Addr
}

// Avoiding returns t with these paths out of use, in place of those that t avoids. It
// returns t itself if they are the same. A path stays in use if its pair would have none
// left. Links and other pairs are not affected. Whole and Avoiding() bring all paths
// back.
func (t *Topology) Avoiding(list ...Avoided) *Topology {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Avoided) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), a.Dst.Compare(b.Dst), cmp.Compare(a.Path, b.Path))
	})
	list = slices.Compact(list)
	if slices.Equal(list, t.Avoided()) {
		return t
	}
	u := *t
	u.avoided = nil
	if len(list) == 0 {
		return &u
	}
	u.avoided = &avoidance{list: list, by: make(map[pair][2]int32)}
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].Src == list[from].Src && list[to].Dst == list[from].Dst {
			to++
		}
		u.avoided.by[pair{list[from].Src, list[from].Dst}] = [2]int32{int32(from), int32(to)}
		from = to
	}
	return &u
}

// Avoided returns the paths that are out of use for their pairs alone, ascending. The
// caller must not write to the list.
func (t *Topology) Avoided() []Avoided {
	if t.avoided == nil {
		return nil
	}
	return t.avoided.list
}

// of returns the paths that a pair avoids.
func (a *avoidance) of(src NodeID, dst netip.Addr) []Avoided {
	if a == nil {
		return nil
	}
	at := a.by[pair{src, dst}]
	return a.list[at[0]:at[1]]
}

// leave returns the live paths of a pair that it does not avoid.
func (a *avoidance) leave(src NodeID, dst netip.Addr, live []int) []int {
	avoided := a.of(src, dst)
	if len(avoided) == 0 {
		return live
	}
	left := make([]int, 0, len(live))
	for _, n := range live {
		for len(avoided) > 0 && avoided[0].Path < n {
			avoided = avoided[1:]
		}
		if len(avoided) == 0 || avoided[0].Path != n {
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return live
	}
	return left
}

// Redirected returns the hosts, ascending, for which a host avoids different paths in t
// than in u. As with Diff, t and u must be of one fabric.
func (t *Topology) Redirected(u *Topology, src NodeID) (hosts []netip.Addr) {
	if t.avoided == u.avoided {
		return nil
	}
	for _, x := range [2][]Avoided{t.Avoided(), u.Avoided()} {
		for i, a := range x {
			if a.Src != src || i > 0 && x[i-1].Src == src && x[i-1].Dst == a.Dst {
				continue
			}
			if !slices.Equal(t.avoided.of(src, a.Dst), u.avoided.of(src, a.Dst)) {
				hosts = append(hosts, a.Dst)
			}
		}
	}
	slices.SortFunc(hosts, netip.Addr.Compare)
	return slices.Compact(hosts)
}
