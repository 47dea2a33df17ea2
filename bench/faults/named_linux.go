package faults

import (
	"regexp"
	"slices"
	"strings"
)

// maxAlternatives is how many causes a sentence may leave open. One that lists more is no answer:
// it is true of too many faults.
const maxAlternatives = 3

// Named reports whether what a tool says first names the cause of a fault: what is wrong, and
// where, among few alternatives. What to do about it does not count.
func (f *Fault) Named(s Said) bool {
	at := func(place string) bool {
		return slices.Contains(placesIn(s.Cause), place) && sameKind(s.Cause, place) <= max(maxAlternatives, len(f.At))
	}
	return f.Cause.In(s.Cause) && alternatives(s.Cause) <= maxAlternatives && (len(f.At) == 0 || slices.ContainsFunc(f.At, at))
}

// placePattern is a name of a node or a link of the Bed.
var placePattern = regexp.MustCompile(`[a-z][0-9]+(?:\.[0-9]+)+(?:-[a-z][0-9]+(?:\.[0-9]+)+)?`)

// placesIn lists the nodes and links that a sentence names. A link's ends are not among them.
func placesIn(sentence string) []string {
	all := placePattern.FindAllString(sentence, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// kindOf is what a place is: a link, or a node by the letter of its layer.
func kindOf(place string) string {
	if strings.Contains(place, "-") {
		return "link"
	}
	return place[:1]
}

// sameKind is how many places a sentence names that are what a place is.
func sameKind(sentence, place string) (n int) {
	for _, p := range placesIn(sentence) {
		if kindOf(p) == kindOf(place) {
			n++
		}
	}
	return n
}

// clauses end where a list of alternatives ends.
var clauses = regexp.MustCompile(`[;:()!]|\. `)

// alternatives is how many things the longest list of a sentence leaves open: "a, b or c".
func alternatives(sentence string) int {
	most := 1
	for _, c := range clauses.Split(sentence, -1) {
		last := strings.LastIndex(c, " or ")
		if last < 0 {
			continue
		}
		list := strings.ReplaceAll(c[:last+1]+"or ", ", or ", " or ")
		most = max(most, 1+strings.Count(list, " or ")+strings.Count(list, ", "))
	}
	return most
}
