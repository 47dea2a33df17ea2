package daemon

import (
	"cmp"
	"math"
	"slices"
)

// blamedBoth puts together what the packets of IPv4 and of IPv6 say. Each family's evidence is
// weighed alone, as a switch may lose the packets of one only (its rules, its decapsulation), and
// that would look like half a fault to both together. What both blame is one entry. Entries are
// the same if they have a place in common, by name: the families see the fabric with numbers of
// their own.
func blamedBoth(four, six []BlameStatus) []BlameStatus {
	list := make([]BlameStatus, 0, len(four)+len(six))
	for _, b := range four {
		b.Family = "ipv4"
		list = append(list, b)
	}
	for _, b := range six {
		i := slices.IndexFunc(list, func(o BlameStatus) bool { return o.Family == "ipv4" && len(common(&o, &b)) > 0 })
		if i >= 0 {
			list[i] = list[i].and(&b)
			continue
		}
		b.Family = "ipv6"
		list = append(list, b)
	}
	sortBlamed(list)
	return list
}

// common lists the places of a that b has, too, by their index in a.
func common(a, b *BlameStatus) (at []int) {
	for i, p := range a.Places {
		if slices.Contains(b.Places, p) {
			at = append(at, i)
		}
	}
	return at
}

// and is what two families say of one place. What is said by one alone stays.
func (a BlameStatus) and(b *BlameStatus) BlameStatus {
	s := BlameStatus{Loss: together(&a, b), Lost: a.Lost + b.Lost, Paths: a.Paths + b.Paths, Confidence: max(a.Confidence, b.Confidence)}
	for _, i := range common(&a, b) {
		s.Places, s.Kinds = append(s.Places, a.Places[i]), append(s.Kinds, a.Kinds[i])
	}
	switch {
	case a.Why == "" || b.Why == "":
		w := a
		if a.Why == "" {
			w = *b
		}
		s.Why, s.Held, s.Says = w.Why, w.Held, w.Says
	default:
		s.Why, s.Held = a.Why, a.Held && b.Held
		if a.Says != nil && b.Says != nil {
			s.Says = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Says, b.Says))))
			s.Says = s.Says[:min(len(s.Says), maxSays)]
		}
	}
	s.Hurt = slices.Concat(a.Hurt, b.Hurt)
	slices.SortStableFunc(s.Hurt, func(x, y HurtStatus) int { return cmp.Compare(y.Lost, x.Lost) })
	s.Hurt = s.Hurt[:min(len(s.Hurt), maxHurt)]
	return s
}

// maxHurt bounds BlameStatus.Hurt.
const maxHurt = 8

// together is the part of the packets of both that is lost.
func together(a, b *BlameStatus) float64 {
	if a.Loss == 0 || b.Loss == 0 {
		return math.Max(a.Loss, b.Loss)
	}
	return float64(a.Lost+b.Lost) / (float64(a.Lost)/a.Loss + float64(b.Lost)/b.Loss)
}
