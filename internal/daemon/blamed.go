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
	Kinds  []string `json:"kinds"`          // what each of Places is: "link", "switch" or "host"
	Why    string   `json:"why,omitempty"`  // the evidence for which it is out of use
	Held   bool     `json:"held,omitempty"` // it stays in use for all that, as too few others are left
	// Says are the hosts on whose word alone Why rests: at most 8. Then only packets to them
	// avoid the place.
	Says []string `json:"says,omitempty"`
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
// probes say now, switches of which no link works, and what has lost packets lately.
func blamed(t *topology.Topology, self netip.Addr, paths []liveness.PathHealth, suspects []liveness.Suspect) []BlameStatus {
	list := suspected(t, suspects)
	node, ok := t.ByAddr(self)
	if !ok {
		return withDead(t, list)
	}
	for _, v := range blame.Losses(blame.Evidence(t, node, thinned(paths, maxEvidence))) {
		b := BlameStatus{Loss: v.Loss, Lost: int(math.Round(v.Lost)), Paths: v.Paths, Confidence: v.Confidence}
		for _, p := range v.Places {
			b.Places, b.Kinds = append(b.Places, p.Name(t)), append(b.Kinds, p.Kind.String())
		}
		for _, h := range v.Hurt {
			if h.Host != self {
				b.Hurt = append(b.Hurt, HurtStatus{t.HostName(h.Host), int(math.Round(h.Lost))})
			}
		}
		if i := slices.IndexFunc(list, func(s BlameStatus) bool { return s.Loss == 0 && slices.Contains(b.Places, s.Places[0]) }); i >= 0 {
			was := list[i]
			if b.Why, b.Held, b.Says = was.Why, was.Held, was.Says; was.Says == nil {
				b.Places, b.Kinds, b.Confidence = was.Places, was.Kinds, was.Confidence
			}
			list[i] = b
			continue
		}
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b BlameStatus) int { return cmp.Compare(b.Lost, a.Lost) })
	return withDead(t, list)
}

// maxSays bounds BlameStatus.Says.
const maxSays = 8

// suspected lists the links that are suspected, and those that single hosts accuse. What one
// host alone says of a link is as likely the host's own fault.
func suspected(t *topology.Topology, suspects []liveness.Suspect) (list []BlameStatus) {
	at := make(map[topology.LinkID]int)
	for _, s := range suspects {
		i, known := at[s.Link]
		if !known {
			i = len(list)
			at[s.Link] = i
			list = append(list, BlameStatus{Places: []string{t.LinkName(s.Link)}, Kinds: []string{blame.Link.String()}, Why: s.Why, Held: s.Held, Confidence: 1})
		}
		b := &list[i]
		if s.Path < 0 || known && b.Says == nil {
			continue // all say so
		}
		b.Held, b.Confidence = b.Held && s.Held, 0.5
		if host := t.HostName(s.Dst); len(b.Says) < maxSays && !slices.Contains(b.Says, host) {
			b.Says = append(b.Says, host)
		}
	}
	return list
}

// explain says of paths, of which list is the status, which place explains that they are out
// of use or lose probes.
func explain(t *topology.Topology, self netip.Addr, by []BlameStatus, paths []liveness.PathHealth, list []PathStatus) {
	node, ok := t.ByAddr(self)
	if !ok || len(by) == 0 {
		return
	}
	for i, places := range blame.Places(t, node, paths) {
		crosses := func(name string) bool {
			return slices.ContainsFunc(places, func(p blame.Place) bool { return p.Name(t) == name })
		}
		for _, b := range by {
			if b.explains(&list[i]) && slices.ContainsFunc(b.Places, crosses) {
				list[i].Blamed = b.Places[0]
				break
			}
		}
	}
}

// explains reports whether what is said of a place explains the state of a path over it:
// evidence that is good for all, or for the path's host, or at least half of what the path
// loses.
func (b *BlameStatus) explains(p *PathStatus) bool {
	switch {
	case p.Why == "" && p.Loss == 0:
		return false // nothing is to be explained
	case b.Why != "" && (b.Says == nil || slices.Contains(b.Says, p.To)):
		return true
	}
	return p.State != string(liveness.Slow) && b.Loss > 0 && 2*b.Loss >= p.Loss
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
