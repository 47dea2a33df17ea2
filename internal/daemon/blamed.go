package daemon

import (
	"cmp"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"

	"weft/internal/blame"
	"weft/liveness"
	"weft/topology"
)

// BlameStatus is what hurts packets of this host: a link, a switch, or a host with the link
// that leads to it.
type BlameStatus struct {
	// Places are their names: "a0.2-c1.1", "c1.1" or "h3.1.3". It is several where no path
	// tells them apart: the fault is at one of them.
	Places []string `json:"places"`
	Why    string   `json:"why,omitempty"`  // probes speak against it: the evidence
	Held   bool     `json:"held,omitempty"` // it stays in use in spite of Why: too few others are left
	// Loss is the part of the packets that it loses, Lost how many it has lost in the last 10
	// to 20 s, and Paths how many paths over it say so. All are 0 if only Why speaks against it.
	Loss  float64 `json:"loss"`
	Lost  int     `json:"lost"`
	Paths int     `json:"paths"`
	// Confidence is the chance that it is this place and no other that explains the same, in
	// (0, 1].
	Confidence float64      `json:"confidence"`
	Hurt       []HurtStatus `json:"hurt,omitempty"` // whose packets it loses, most first: at most 8
}

// HurtStatus is a host to which packets were lost.
type HurtStatus struct {
	To   string `json:"to"`
	Lost int    `json:"lost"`
}

// maxEvidence bounds the paths whose evidence one status looks at.
const maxEvidence = 1 << 14

// blamed says what hurts the packets of the host self in t: links that are suspected by what
// probes say now, and what has lost packets lately.
func blamed(t *topology.Topology, self netip.Addr, paths []liveness.PathHealth, suspects []liveness.Suspect) []BlameStatus {
	var list []BlameStatus
	for _, s := range suspects {
		if s.Path < 0 {
			list = append(list, BlameStatus{Places: []string{t.LinkName(s.Link)}, Why: s.Why, Held: s.Held, Confidence: 1})
		}
	}
	node, ok := t.ByAddr(self)
	if !ok {
		return list
	}
	for _, v := range blame.Losses(blame.Evidence(t, node, thinned(paths, maxEvidence))) {
		b := BlameStatus{Loss: v.Loss, Lost: int(math.Round(v.Lost)), Paths: v.Paths, Confidence: v.Confidence}
		for _, p := range v.Places {
			b.Places = append(b.Places, p.Name(t))
		}
		for _, h := range v.Hurt {
			if h.Host != self {
				b.Hurt = append(b.Hurt, HurtStatus{t.HostName(h.Host), int(math.Round(h.Lost))})
			}
		}
		if i := slices.IndexFunc(list, func(s BlameStatus) bool { return s.Loss == 0 && slices.Contains(b.Places, s.Places[0]) }); i >= 0 {
			b.Places, b.Why, b.Held = list[i].Places, list[i].Why, list[i].Held
			list[i] = b
			continue
		}
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b BlameStatus) int { return cmp.Compare(b.Lost, a.Lost) })
	return list
}

// thinned returns n paths at most, on average: a random part of them, the same each time, so that
// of each place's paths as large a part is left.
func thinned(paths []liveness.PathHealth, n int) []liveness.PathHealth {
	if len(paths) <= n {
		return paths
	}
	random := rand.New(rand.NewPCG(1, 2))
	some := make([]liveness.PathHealth, 0, n)
	for _, p := range paths {
		if random.IntN(len(paths)) < n {
			some = append(some, p)
		}
	}
	return some
}
