package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The least screen that Text fills.
const (
	MinRows    = 10
	MinColumns = 40
)

// Text returns the View in lines for a screen of so many rows and columns. It has at most
// rows-1 lines, of at most columns characters, and at least what fits MinRows and MinColumns.
func (v View) Text(rows, columns int) string {
	rows, columns = max(rows, MinRows)-1, max(columns, MinColumns)
	lines := []string{cut(v.Headline(), columns)}
	if v.About != "" {
		lines = append(lines, cut(v.About, columns))
	}
	if v.Forwards != "" {
		lines = append(lines, cut(v.Forwards, columns))
	}
	left := rows - len(lines)
	problems := v.problems(columns, v.forProblems(left))
	left -= len(problems)
	lines = append(lines, problems...)
	for i, t := range v.Tables {
		more := 0 // what later tables want
		for _, later := range v.Tables[i+1:] {
			more += later.height()
		}
		give := left
		if more > 0 {
			give = max(left-more, left/2)
		}
		text := t.text(give, columns)
		left -= len(text)
		lines = append(lines, text...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// Headline returns who it is and the verdict, in a line of any length.
func (v View) Headline() string { return v.Who + ": " + strings.ToUpper(v.Verdict) + andWhy(v.Why) }

// andWhy is what follows the verdict.
func andWhy(why string) string {
	if why == "" {
		return ""
	}
	return ", " + why
}

// forProblems is how many of the lines left the problems may take: what the tables do not
// want, and at least half.
func (v View) forProblems(left int) int {
	want := 0
	for _, t := range v.Tables {
		want += t.height()
	}
	return max(left-want, left/2)
}

// height is how many lines a table wants.
func (t Table) height() int {
	switch n := len(t.Rows); {
	case n == 0:
		return 0
	default:
		return n + 2 + min(t.Hidden, 1)
	}
}

// maxWrapped is the most lines of what is wrong, and of what to do about it.
const maxWrapped = 3

// problems are at most so many lines of the problems, with an empty one before.
func (v View) problems(columns, most int) (lines []string) {
	if len(v.Problems) == 0 || most < 3 {
		return nil
	}
	lines = []string{""}
	for i, p := range v.Problems {
		mark := "! "
		if p.Note {
			mark = "- "
		}
		rest := 1 // for "and N more"
		if i == len(v.Problems)-1 {
			rest = 0
		}
		room := 2 * maxWrapped
		if i == 0 { // it is told in any case, if need be without all of its words
			room = most - len(lines) - rest
		}
		next := wrap(p.What, mark, "  ", columns, min(room, maxWrapped))
		if room -= len(next); p.Do != "" && room > 0 {
			next = append(next, wrap("do: "+p.Do, "  ", "      ", columns, min(room, maxWrapped))...)
		}
		if len(lines)+len(next)+rest > most && i > 0 {
			return append(lines, cut(fmt.Sprintf("  and %d more: weft status --all", len(v.Problems)-i), columns))
		}
		lines = append(lines, next...)
	}
	return lines
}

// text is a table in at most so many lines, with an empty one before.
func (t Table) text(most, columns int) (lines []string) {
	const frame = 2 // the empty line and the head
	if len(t.Rows) == 0 || most < frame+1 {
		return nil
	}
	rows, hidden := slices.Clone(t.Rows), t.Hidden
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(worth(b), worth(a)) })
	if len(rows)+frame > most || hidden > 0 && len(rows)+frame+1 > most {
		keep := most - frame - 1
		hidden += len(rows) - keep
		bad := 0
		for _, r := range rows[keep:] {
			bad += worth(r)
		}
		rows = rows[:keep]
		lines = append(lines, cut("and "+rest(hidden, bad, t.Of), columns))
	} else if hidden > 0 {
		lines = append(lines, cut("and "+rest(hidden, 0, t.Of), columns))
	}
	all := make([][]string, 0, len(rows)+1)
	all = append(all, t.Head)
	for _, r := range rows {
		all = append(all, r.Cells)
	}
	return slices.Concat([]string{""}, align(all, columns), lines)
}

func worth(r Row) int {
	if r.Bad {
		return 1
	}
	return 0
}

// rest says what a table leaves out.
func rest(hidden, bad int, of string) string {
	if bad == 0 {
		return fmt.Sprintf("%d more %s, all well", hidden, of)
	}
	return fmt.Sprintf("%d more %s, %d of them not well: weft status --all", hidden, of, bad)
}

// align puts cells into columns. What does not fit the screen is cut off.
func align(rows [][]string, columns int) (lines []string) {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
			}
		}
		lines = append(lines, cut(strings.TrimRight(b.String(), " "), columns))
	}
	return lines
}

// wrap breaks a text between words into at most so many lines. first begins the first line,
// others the others.
func wrap(text, first, others string, columns, most int) (lines []string) {
	line, empty := first, true
	words := strings.Fields(text)
	for i, w := range words {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w) > columns {
			if len(lines) >= most-1 {
				return append(lines, cut(line+" "+strings.Join(words[i:], " "), columns))
			}
			lines, line, empty = append(lines, cut(line, columns)), others, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+w, false
	}
	return append(lines, cut(line, columns))
}

// cut shortens a line to so many characters.
func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}
