package daemon

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"weft/internal/blame"
	"weft/liveness"
	"weft/topology"
)

// LateStatus is where packets take longer than by other ways as long, all the time: a detour, a
// long cable, or a device on the way that holds them. Paths over it stay in use.
type LateStatus struct {
	Places []string `json:"places"` // as in BlameStatus
	Kinds  []string `json:"kinds"`
	By     []string `json:"by"`                  // the bouncing switches of the ways over it, maxLate at most
	Unsaid int      `json:"by_unsaid,omitempty"` // how many more there are
	Took   float64  `json:"rtt_ms"`              // the fastest of the ways over it takes that at least
	Others float64  `json:"others_ms"`           // of half of the others at most
}

// maxLate bounds the names of each list of a LateStatus.
const maxLate = 8

// A way is late if even the fastest of its latest 64 round trips took lateTimes as long as
// by half of the other ways to switches of that layer, and longer by lateLeast.
const (
	lateTimes = 2
	lateLeast = 500 * time.Microsecond
)

// later says where ways up are late, by the least of their round trips; nil if nowhere. A delay
// that more than half of the ways share, or that is less than a queue's, says nothing.
func later(t *topology.Topology, self netip.Addr, paths []liveness.PathHealth) *LateStatus {
	node, ok := t.ByAddr(self)
	if !ok {
		return nil
	}
	all := blame.Places(t, node, paths)
	layers := make(map[topology.Layer][]int) // ways by the layer of their switch
	for i := range paths {
		p := &paths[i]
		if p.Dst != self || p.RTTLeast == 0 || all[i] == nil || p.State != liveness.Up && p.State != liveness.Suspicious {
			continue
		}
		if via, ok := t.ByAddr(p.Via); ok {
			layers[t.Node(via).Layer] = append(layers[t.Node(via).Layer], i)
		}
	}
	var late, good []int
	usual, took := time.Duration(0), time.Duration(0)
	for _, l := range slices.Sorted(maps.Keys(layers)) {
		ways := layers[l]
		half := usualOf(paths, ways)
		for _, i := range ways {
			if rtt := paths[i].RTTLeast; len(ways) > 2 && rtt >= lateTimes*half && rtt-half >= lateLeast {
				if len(late) == 0 || rtt < took {
					took = rtt
				}
				late, usual = append(late, i), max(usual, half)
			} else {
				good = append(good, i)
			}
		}
	}
	if len(late) == 0 {
		return nil
	}
	s := &LateStatus{Took: milliseconds(took), Others: milliseconds(usual)}
	for _, at := range all[late[0]] {
		has := func(i int) bool { return slices.Contains(all[i], at) }
		if len(s.Places) < maxLate && !slices.ContainsFunc(good, has) && !slices.ContainsFunc(late, func(i int) bool { return !has(i) }) {
			s.Places, s.Kinds = append(s.Places, at.Name(t)), append(s.Kinds, at.Kind.String())
		}
	}
	for _, i := range late {
		s.By = append(s.By, bounceName(t, paths[i].Via))
	}
	slices.Sort(s.By)
	s.By = slices.Compact(s.By)
	if n := len(s.By); n > maxLate {
		s.By, s.Unsaid = s.By[:maxLate:maxLate], n-maxLate
	}
	return s
}

// usualOf returns the lower median of the least round trips of some ways.
func usualOf(paths []liveness.PathHealth, ways []int) time.Duration {
	rtts := make([]time.Duration, 0, len(ways))
	for _, i := range ways {
		rtts = append(rtts, paths[i].RTTLeast)
	}
	slices.SortFunc(rtts, cmp.Compare)
	return rtts[(len(rtts)-1)/2]
}
