package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text says findings, which are sorted, for people: a verdict, what is wrong with cause and fix,
// and in a line each what is well and what was not looked at.
func Text(who string, all []Finding) string {
	all = printable(all)
	var b strings.Builder
	n, nodes := Wrong(all), make(map[string]bool)
	var well, skipped []string
	for _, f := range all {
		nodes[f.Node] = true
	}
	switch {
	case n == 0:
		fmt.Fprintf(&b, "%s: WELL, %s\n", who, plural(len(all)-unasked(all), "check"))
	case n == 1:
		fmt.Fprintf(&b, "%s: 1 THING IS WRONG\n", who)
	default:
		fmt.Fprintf(&b, "%s: %d THINGS ARE WRONG, the most likely root first\n", who, n)
	}
	for i, g := range alike(all) {
		fmt.Fprintf(&b, "%d. %s%s: %s\n", i+1, at(g.nodes), g.Check, g.Cause)
		if g.Fix != "" {
			fmt.Fprintf(&b, "   fix: %s\n", g.Fix)
		}
	}
	for _, f := range all {
		switch {
		case !f.OK, len(nodes) > 1:
		case f.Skipped != "":
			skipped = append(skipped, fmt.Sprintf("%s (%s)", f.Check, f.Skipped))
		default:
			well = append(well, f.Check)
		}
	}
	if len(well) > 0 {
		fmt.Fprintf(&b, "well: %s\n", strings.Join(well, ", "))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(&b, "not looked at: %s\n", strings.Join(skipped, ", "))
	}
	if len(nodes) > 1 {
		b.WriteString(nodesText(all))
	}
	return b.String()
}

// printable returns findings whose words no terminal takes for commands: other machines have said
// some of them.
func printable(all []Finding) []Finding {
	clean := func(text string) string {
		if strings.IndexFunc(text, unprintable) < 0 && utf8.ValidString(text) {
			return text
		}
		var b strings.Builder
		for _, r := range text { // a byte that is no UTF-8 becomes U+FFFD
			if unprintable(r) {
				b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	all = slices.Clone(all)
	for i := range all {
		for _, s := range []*string{&all[i].Node, &all[i].Check, &all[i].Cause, &all[i].Fix, &all[i].Skipped} {
			*s = clean(*s)
		}
	}
	return all
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// nodesText says which of several machines are well.
func nodesText(all []Finding) string {
	var order []string
	bad, skipped := make(map[string]int), 0
	for _, f := range all {
		if _, known := bad[f.Node]; !known {
			bad[f.Node] = 0
			order = append(order, f.Node)
		}
		if !f.OK {
			bad[f.Node]++
		}
		if f.Skipped != "" {
			skipped++
		}
	}
	var well []string
	for _, name := range order {
		if bad[name] == 0 {
			well = append(well, name)
		}
	}
	text := ""
	if len(well) > 0 {
		text = fmt.Sprintf("well: %s\n", strings.Join(well, ", "))
	}
	if skipped > 0 {
		text += fmt.Sprintf("not looked at: %s (--json says which, and why)\n", plural(skipped, "check"))
	}
	return text
}

// same is one finding of several machines.
type same struct {
	Finding
	nodes []string
}

// alike puts together what is wrong in the same words on several machines, at the place of the
// first.
func alike(all []Finding) (list []same) {
	at := make(map[Finding]int)
	for _, f := range all {
		if f.OK {
			continue
		}
		key := Finding{Check: f.Check, Cause: f.Cause, Fix: f.Fix}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, same{Finding: f})
		}
		if f.Node != "" {
			list[i].nodes = append(list[i].nodes, f.Node)
		}
	}
	return list
}

func at(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return join(nodes) + ": "
}

func unasked(all []Finding) (n int) {
	for _, f := range all {
		if f.Skipped != "" {
			n++
		}
	}
	return n
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Merge puts the findings of several machines together, the most likely root first.
func Merge(nodes ...[]Finding) []Finding {
	all := []Finding{}
	for _, n := range nodes {
		all = append(all, n...)
	}
	Sort(all)
	return all
}
