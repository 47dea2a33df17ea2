package overview

import (
	"fmt"
	"slices"
	"strings"
)

// placeProblems tells which places of the fabric hurt packets, of those that which picks: one problem a place, with all
// that speaks against it. Links that are suspected for one reason are one problem.
func (h *Host) placeProblems(which func(*Blame) bool) (all []Problem) {
	if h.Failures == nil {
		return nil
	}
	for _, g := range grouped(h.Failures.Blamed) {
		b := &g[0]
		if !which(b) {
			continue
		}
		var names []string
		for i := range g {
			names = append(names, g[i].Places[0])
		}
		what := list("link", "links", names)
		if len(g) == 1 {
			what = b.where()
		}
		if len(b.Says) == 1 {
			what += ", as " + b.Says[0] + " alone says"
		} else if len(b.Says) > 1 {
			what += ", as only " + and(b.Says) + " say"
		}
		if b.Held {
			what += ", in use as too few others are left"
		}
		do := doPlaces(g)
		if e := b.evidence(); e != "" {
			if h.Failures.contradicted(g) {
				e, do = e+notTheCable, do+doSettings
			}
			what += " (" + e + ")"
		}
		all = append(all, Problem{What: what, Do: do})
	}
	return all
}

// whyDead is why a link is suspected over which nothing comes home (liveness).
const whyDead = "probes not answered"

// notTheCable is what else it may be where the switches at both ends say that the link works.
const notTheCable = ", though its switches hear each other: the link loses some packets only, or one of its switches does not forward them"

// doSettings is what a switch may have that has it not forward packets with outer headers.
const doSettings = "; weft doctor there: are outer headers taken off (weft switch status), is protocol 4 filtered, ip_forward off, rp_filter strict?"

// contradicted reports whether links are suspected to be dead of which the switches say that
// they work.
func (f *Failures) contradicted(g []Blame) bool {
	u := f.Updates
	if u == nil || u.Heard < 0 || u.Switches == 0 || u.Refused+u.Silent+u.Error != "" {
		return false
	}
	return !slices.ContainsFunc(g, func(b Blame) bool {
		return b.Why != whyDead || len(b.Places) != 1 || b.kind(0) != "link" || slices.Contains(u.Down, b.Places[0])
	})
}

// grouped puts together suspected links of which the same is known.
func grouped(all []Blame) (groups [][]Blame) {
	for _, b := range all {
		if len(b.Places) == 0 {
			continue
		}
		i := slices.IndexFunc(groups, func(g []Blame) bool { return b.suspect() && b.like(&g[0]) })
		if i < 0 {
			groups = append(groups, []Blame{b})
			continue
		}
		groups[i] = append(groups[i], b)
	}
	return groups
}

// suspect reports whether it is a link that only its Why speaks against.
func (b *Blame) suspect() bool { return len(b.Places) == 1 && b.kind(0) == "link" && b.Loss == 0 }

func (b *Blame) like(o *Blame) bool {
	return o.suspect() && b.Why == o.Why && b.Held == o.Held && slices.Equal(b.Says, o.Says)
}

// kind is what a place is: link, switch or host; "" if the daemon does not say.
func (b *Blame) kind(place int) string {
	if place < len(b.Kinds) {
		return b.Kinds[place]
	}
	return ""
}

// where names all places that it may be.
func (b *Blame) where() string {
	var names []string
	for i, p := range b.Places {
		names = append(names, strings.TrimSpace(b.kind(i)+" "+p))
	}
	return strings.Join(names, " or ")
}

// evidence is all that speaks against it.
func (b *Blame) evidence() string {
	var parts []string
	if b.Why != "" {
		parts = append(parts, b.Why)
	}
	if b.Loss > 0 {
		parts = append(parts, fmt.Sprintf("loses %s: %s by %s", percent(b.Loss), count(b.Lost, "packet", "packets"), count(b.Paths, "path", "paths")))
	}
	return strings.Join(parts, "; ")
}

// doPlaces is what to do about places of which the same is known.
func doPlaces(g []Blame) string {
	var at []string
	add := func(name string) {
		if !slices.Contains(at, name) {
			at = append(at, name)
		}
	}
	for i := range g {
		for j, p := range g[i].Places {
			a, b, ok := strings.Cut(p, "-")
			if g[i].kind(j) != "link" || !ok || strings.Contains(b, "-") { // of names with a hyphen the ends are not told apart
				add(p)
				continue
			}
			add(a)
			add(b)
		}
	}
	if b := &g[0]; len(g) == 1 && len(b.Places) == 1 && b.kind(0) == "switch" && b.Loss == 0 {
		return "is " + b.Places[0] + " on? Look at its console, and at weft switch status there"
	}
	do := "on " + and(at) + ": ip -s link, ethtool -S"
	if says := g[0].Says; len(says) > 0 {
		do += "; on " + and(says) + ": weft status"
	}
	return do + "; weft blame"
}

// and joins at most four names.
func and(all []string) string {
	switch n := len(all); {
	case n > 4:
		return strings.Join(all[:4], ", ") + ", ..."
	case n > 1:
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// blames reports whether something that is blamed for all is a link of a name, or a switch at
// one of its ends.
func (f *Failures) blames(link string) bool {
	return slices.ContainsFunc(f.Blamed, func(b Blame) bool {
		if b.Why == "" || len(b.Says) > 0 {
			return false
		}
		lower, upper, ok := f.ends(link)
		return slices.Contains(b.Places, link) || ok && len(b.Places) == 1 && b.kind(0) == "switch" &&
			(b.Places[0] == lower || b.Places[0] == upper)
	})
}

// ends are the names of both ends of a link that is down, the lower one first. Where the daemon
// does not say them, those of a name with more than one hyphen are not guessed.
func (f *Failures) ends(link string) (lower, upper string, ok bool) {
	if i := slices.Index(f.Down, link); i >= 0 && len(f.DownEnds) == len(f.Down) {
		return f.DownEnds[i][0], f.DownEnds[i][1], true
	}
	lower, upper, ok = strings.Cut(link, "-")
	return lower, upper, ok && !strings.Contains(upper, "-")
}

// cutOff lists the switches at the upper ends of links that are down to which no other way is
// left: one cannot tell such a link from its switch.
func (f *Failures) cutOff(links []string) (names []string) {
	left := make(map[string]bool) // by bouncing switch, whether a way is
	for _, p := range f.Paths {
		if p.Bounce != "" {
			left[p.Bounce] = left[p.Bounce] || p.State != "down" && p.State != "quarantined"
		}
	}
	for _, l := range links {
		_, upper, ok := f.ends(l)
		if is, known := left[upper]; ok && known && !is && !slices.Contains(names, upper) {
			names = append(names, upper)
		}
	}
	slices.Sort(names)
	return names
}

// accused reports whether a path that is avoided, such as "h3.1.3 by c1.1", is so for what
// its host says of a place.
func (f *Failures) accused(path string) bool {
	host, _, _ := strings.Cut(path, " by ")
	return slices.ContainsFunc(f.Blamed, func(b Blame) bool { return slices.Contains(b.Says, host) })
}

// explained reports whether all that is wrong with a rack is that nothing comes home from
// switches to which the ways are broken at a place that is blamed.
func (f *Failures) explained(r *Rack) bool {
	names, ok := strings.CutSuffix(strings.TrimPrefix(r.Why, "not by "), ": no boomerang comes home from there")
	if !ok || r.Plain || !strings.HasPrefix(r.Why, "not by ") {
		return false
	}
	for name := range strings.SplitSeq(names, ", ") {
		if !slices.ContainsFunc(f.Paths, func(p Path) bool { return p.Bounce == name && p.Blamed != "" }) {
			return false
		}
	}
	return true
}

// switchAt is the name of a bouncing switch by its address, or the address: the host's ways
// up have the names.
func (f *Failures) switchAt(p *Path) string {
	if i := slices.IndexFunc(f.Paths, func(q Path) bool { return q.Via == p.Via && q.Bounce != "" }); i >= 0 {
		return f.Paths[i].Bounce
	}
	return p.Via.String()
}
