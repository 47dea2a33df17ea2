package graph

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Text returns the Graph as Parse reads it: a node and a link a line, in the order of their
// numbers.
func (g *Graph) Text() []byte {
	var b bytes.Buffer
	b.WriteString("nodes:\n")
	for _, n := range g.nodes {
		var fields []string
		add := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
		if n.Tier > 0 {
			add("tier: %d", n.Tier)
		}
		if len(n.Addresses) > 0 {
			add("addresses: [%s]", quoted(n.Addresses))
		}
		if len(n.Prefixes) > 0 {
			add("prefixes: [%s]", quoted(n.Prefixes))
		}
		if n.AS > 0 {
			add("as: %d", n.AS)
		}
		if s := n.SIDs; !s.None() {
			sids := "node: " + scalar(s.Node.String())
			if s != (SIDs{Node: s.Node}).complete() {
				sids += fmt.Sprintf(", decap4: %s, decap6: %s", scalar(s.Decap4.String()), scalar(s.Decap6.String()))
			}
			add("sids: {%s}", sids)
		}
		fmt.Fprintf(&b, "  %s: {%s}\n", scalar(n.Name), strings.Join(fields, ", "))
	}
	if len(g.links) > 0 {
		b.WriteString("links:\n")
	}
	for i := 0; i < len(g.links); {
		l, count := g.links[i], 1
		for l.Ports == [2]string{} && i+count < len(g.links) && count < maxBundle && alike(l, g.links[i+count]) {
			count++
		}
		fmt.Fprintf(&b, "  - {ends: [%s, %s]", scalar(l.Ends[0]), scalar(l.Ends[1]))
		if l.Ports != [2]string{} {
			fmt.Fprintf(&b, ", ports: [%s, %s]", scalar(l.Ports[0]), scalar(l.Ports[1]))
		}
		if l.Rate > 0 {
			fmt.Fprintf(&b, ", rate: %s", strconv.FormatFloat(l.Rate, 'f', -1, 64))
		}
		if count > 1 {
			fmt.Fprintf(&b, ", count: %d", count)
		}
		b.WriteString("}\n")
		i += count
	}
	return b.Bytes()
}

// alike reports whether two links differ in nothing but their lines.
func alike(a, b Link) bool {
	b.Line = a.Line
	return a == b
}

// quoted returns a list in which what has colons is quoted: in YAML those could begin a value.
func quoted[T fmt.Stringer](list []T) string {
	var all []string
	for _, v := range list {
		all = append(all, scalar(v.String()))
	}
	return strings.Join(all, ", ")
}

// scalar returns a string as YAML reads it: quoted unless it is plain letters and digits.
func scalar(s string) string {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 && !(c >= '0' && c <= '9') || !strings.ContainsRune("0123456789.-_/", c)) {
			return strconv.Quote(s)
		}
	}
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	return s
}
