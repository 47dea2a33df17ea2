package config

import (
	"regexp"
	"strings"
)

var (
	// named is a name, and what stands between it and its value: of YAML, of JSON, of the
	// environment, of a log. The second way is a flag with its value as the next word, the third
	// an anchor of YAML.
	named = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)\\*["']?[ \t]*[:=]+>?[ \t]*|--?([A-Za-z][A-Za-z0-9_.-]*)[ \t]+|&([A-Za-z0-9_-]+)(?:[ \t]+|$)`)
	// aliased is a name whose value stands at an anchor.
	aliased = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)["']?[ \t]*:[ \t]*\*([A-Za-z0-9_-]+)`)
	// bearer is a token in a header of HTTP.
	bearer = regexp.MustCompile(`(?i)\b(bearer)[ \t]+[A-Za-z0-9._~+/=-]+`)
	// first is what stands before the first name in a line of YAML: it may be commented out, and in
	// a list. nested is a whole line with a name and a value.
	first  = regexp.MustCompile(`^[ \t#]*(?:-[ \t]+)*["']?`)
	nested = regexp.MustCompile(`^([ \t#]*(?:-[ \t]+)*["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?[ \t]*:)([ \t].*)?$`)
	// harmless are values that are no secrets, whatever their name: numbers, true and false.
	harmless = regexp.MustCompile(`^(?:true|false|null|-?[0-9.]{1,5})(?:$|[ \t]*[,}\])#"'\\]|[ \t]*$)`)
	// number is one of JSON, which ends before the next name.
	number = regexp.MustCompile(`^-?[0-9.eE+-]+[ \t]*[,}\]]`)
	// follows is a value that stands on the lines below, with an anchor, a tag or a comment.
	follows = regexp.MustCompile(`^(?:[&!][^\s]*[ \t]*)*(?:#.*)?$`)
	// block says that a text is on the lines below.
	block = regexp.MustCompile(`^(?:[&!][^\s]*[ \t]+)*[|>][-+0-9]*[ \t]*(?:#.*)?$`)
	// brackets is a line with nothing else.
	brackets = regexp.MustCompile(`^[\s{}\[\],]*$`)
)

// lines takes secrets out of a text line by line.
type lines struct {
	anchors map[string]bool // those that a secret's name refers to
	text    region          // below a secret whose value goes on
	within  region          // below a name whose values are secrets, such as keys
}

// region is the lines below a name that are indented more.
type region struct {
	column    int // of the name
	open      bool
	commented bool
}

// has reports whether a line belongs to a region, and ends the region if the line is behind it.
// A list may be indented as its name is.
func (r *region) has(line string, list bool) bool {
	if !r.open || strings.Trim(line, " \t#") == "" {
		return false
	}
	trimmed := strings.TrimLeft(line, " \t")
	comment := trimmed[0] == '#'
	at := len(line) - len(strings.TrimLeft(line, " \t#"))
	inner := strings.TrimLeft(line, " \t#")
	switch {
	case r.commented && !comment:
	case at > r.column, list && at == r.column && strings.HasPrefix(inner, "- "):
		return true
	case comment && !r.commented:
		return false // a comment ends nothing
	}
	r.open = false
	return false
}

// clean returns a line, without its end, without secrets.
func (l *lines) clean(line string) string {
	if l.text.has(line, false) {
		return line[:len(line)-len(strings.TrimLeft(line, " \t#"))] + removed
	}
	if l.within.has(line, true) {
		return l.inside(line)
	}
	return l.scan(line)
}

// inside cleans a line below a name whose values are secrets: names stay, and values that tell
// nothing.
func (l *lines) inside(line string) string {
	if brackets.MatchString(line) {
		return line
	}
	m := nested.FindStringSubmatch(line)
	if m == nil {
		at := len(first.FindString(line))
		return line[:at] + removed
	}
	value := strings.TrimSpace(m[3])
	switch {
	case openValue(m[2]):
		return l.scan(line)
	case harmless.MatchString(value), follows.MatchString(value), brackets.MatchString(value):
		return line
	}
	l.text = regionAt(line, len(first.FindString(line)))
	return m[1] + ` "` + removed + `"`
}

func regionAt(line string, at int) region {
	start := len(first.FindString(line))
	if at > start { // in the midst of a line
		at = len(line) - len(strings.TrimLeft(line, " \t#"))
	} else if at > 0 && (line[at-1] == '"' || line[at-1] == '\'') {
		at--
	}
	return region{column: at, open: true, commented: strings.HasPrefix(strings.TrimLeft(line, " \t"), "#")}
}

// scan takes the values of secrets' names out of a line, wherever they are.
func (l *lines) scan(line string) string {
	var b strings.Builder
	q := quotes{line: line}
	for at := 0; at < len(line); {
		m := named.FindStringSubmatchIndex(line[at:])
		if m == nil {
			b.WriteString(line[at:])
			break
		}
		start, end, secret := 0, at+m[1], false
		switch {
		case m[2] >= 0:
			start, secret = at+m[2], isSecret(line[at+m[2]:at+m[3]])
		case m[4] >= 0:
			start, secret = at+m[4], isSecret(line[at+m[4]:at+m[5]])
		default:
			start, secret = at+m[0], l.anchors[line[at+m[6]:at+m[7]]]
		}
		b.WriteString(line[at:end])
		at = end
		if secret {
			at = l.value(&b, &q, start, end)
		}
	}
	return b.String()
}

// value writes what stands for the value of a secret, and returns where it ends. The name
// starts at start.
func (l *lines) value(b *strings.Builder, q *quotes, start, at int) int {
	line := q.line
	rest := line[at:]
	switch {
	case harmless.MatchString(rest), number.MatchString(rest) && harmlessLength(rest):
		return at
	case follows.MatchString(rest):
		l.within = regionAt(line, start)
		b.WriteString(rest)
		return len(line)
	case block.MatchString(rest):
		l.text = regionAt(line, start)
		b.WriteString(rest)
		return len(line)
	}
	outer := q.enclosing(start)
	mark := `"` + removed + `"`
	if outer > 0 {
		mark = removed
	}
	b.WriteString(mark)
	end := -1
	switch {
	case number.MatchString(rest):
		end = at + strings.IndexAny(rest, ",}] \t")
	case outer > 0:
		return outer
	case rest[0] == '"' || rest[0] == '\'':
		end = closed(line, at)
	case rest[0] == '[' || rest[0] == '{':
		if end = bracketed(line, at); end < 0 {
			l.within = regionAt(line, start)
			return len(line)
		}
	}
	if end < 0 || !delimited(line, end) {
		l.text = regionAt(line, start)
		return len(line)
	}
	return end
}

// harmlessLength reports whether a number is too short for a secret.
func harmlessLength(s string) bool { return strings.IndexAny(s, ",}] \t") <= 5 }

// delimited reports whether a value may end before a place.
func delimited(line string, at int) bool {
	return at >= len(line) || strings.IndexByte(" \t,;}])", line[at]) >= 0
}

// closed returns where a quote ends that begins at a place; -1 if it does not.
func closed(line string, at int) int {
	quote := line[at]
	for i := at + 1; i < len(line); i++ {
		switch {
		case quote == '"' && line[i] == '\\':
			i++
		case quote == '\'' && line[i] == quote && i+1 < len(line) && line[i+1] == quote:
			i++
		case line[i] == quote:
			return i + 1
		}
	}
	return -1
}

// begins reports whether a quote at a place is the beginning of a text.
func begins(line string, at int) bool {
	return (line[at] == '"' || line[at] == '\'') && (at == 0 || strings.IndexByte(" \t=:,[{(", line[at-1]) >= 0)
}

// quotes finds those that enclose places of a line, which are asked for from its beginning on.
type quotes struct {
	line string
	next int // where to look on
	end  int // of the latest that was found
}

// enclosing returns where the quote ends, before its mark, that a name at a place is in; 0 if it is
// in none that ends as quotes do, or is all that is in it.
func (q *quotes) enclosing(place int) int {
	for q.next < place {
		if begins(q.line, q.next) {
			if end := closed(q.line, q.next); end > 0 && delimited(q.line, end) {
				q.next, q.end = end, end
				continue
			}
		}
		q.next++
	}
	if q.end-1 > nameEnds(q.line, place) {
		return q.end - 1
	}
	return 0
}

// nameEnds is where a name ends that begins at a place.
func nameEnds(line string, at int) int {
	for at < len(line) && (strings.IndexByte("_-.", line[at]) >= 0 || line[at]|0x20 >= 'a' && line[at]|0x20 <= 'z' || line[at] >= '0' && line[at] <= '9') {
		at++
	}
	return at
}

// bracketed returns where a bracket ends that begins at a place; -1 if it does not.
func bracketed(line string, at int) int {
	depth := 0
	for i := at; i < len(line); i++ {
		switch c := line[i]; {
		case begins(line, i):
			end := closed(line, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
