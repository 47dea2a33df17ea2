// Package table lays out tables as text of a limited width. Headings that are wider than their
// columns are wrapped, long text is, too, and what is still too wide goes on below, with the
// first columns again. Nothing is left out.
package table

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Width is that of tables that are printed, in letters: it fits most windows, and a page.
const Width = 100

// gap is between columns.
const gap = 2

// leastText is the least width to which text of several words is wrapped.
const leastText = 16

// Table is a table. The zero value is an empty one.
type Table struct {
	Head []string
	// Rows have as many cells as Head, or fewer. An empty row is a blank line.
	Rows [][]string
	// Text is how many of the first columns are text: flush left, and wrapped if need be. The
	// others are flush right, and no cell of theirs is wrapped. Negative: all are text.
	Text int
	// Keys is how many of the first columns say what a row is of, at least 1: they are repeated
	// where a table goes on below.
	Keys int
}

// Write writes the table, no line of which has more letters than width, unless the key columns and
// one more are wider. Its errors are w's.
func (t Table) Write(w io.Writer, width int) error {
	var b bytes.Buffer
	if t.Text < 0 {
		t.Text = len(t.Head)
	}
	all := t.columns()
	for i, part := range t.parts(all, width) {
		if i > 0 {
			b.WriteByte('\n')
		}
		t.write(&b, part, width)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// column is a column that is not empty.
type column struct {
	at   int
	text bool
	// body is what its cells take, heading what it takes with its heading wrapped, least what it
	// takes at least. width is what it gets.
	body, heading, least, width int
}

func (t Table) columns() (all []column) {
	for i, head := range t.Head {
		c := column{at: i, text: i < t.Text}
		body, word := 0, 0
		for _, r := range t.Rows {
			if i < len(r) {
				body, word = max(body, letters(r[i])), max(word, longestWord(r[i]))
			}
		}
		if body == 0 && head == "" {
			continue
		}
		c.body, c.heading = body, max(body, longestWord(head))
		c.least = c.heading
		if c.text {
			c.least = min(c.heading, max(longestWord(head), min(word, longestKept), leastText))
		}
		all = append(all, c)
	}
	return all
}

// longestKept is the longest word that is not broken in wrapped text.
const longestKept = 32

// parts cuts columns into those that fit side by side.
func (t Table) parts(all []column, width int) (parts [][]column) {
	keys := min(max(t.Keys, 1), len(all))
	sum := func(list []column) (n int) {
		for _, c := range list {
			n += c.least + gap
		}
		return n - gap
	}
	if len(all) == 0 || sum(all) <= width {
		return [][]column{all}
	}
	part := append([]column(nil), all[:keys]...)
	for _, c := range all[keys:] {
		if len(part) > keys && sum(append(part[:len(part):len(part)], c)) > width {
			parts = append(parts, part)
			part = append([]column(nil), all[:keys]...)
		}
		part = append(part, c)
	}
	return append(parts, part)
}

// fit narrows columns until they fit: headings to as few lines as do, then the widest text.
func (t Table) fit(list []column, width int) {
	sum := func() int {
		total := -gap
		for _, c := range list {
			total += c.width + gap
		}
		return total
	}
	for lines := 1; ; lines++ {
		wrapped := false
		for i := range list {
			c := &list[i]
			c.width = max(c.body, narrowest(t.Head[c.at], lines))
			wrapped = wrapped || c.width > c.heading
		}
		if sum() <= width || !wrapped {
			break
		}
	}
	for total := sum(); total > width; total-- {
		widest := -1
		for i, c := range list {
			if c.width > c.least && (widest < 0 || c.width > list[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		list[widest].width--
	}
}

// narrowest is the least width at which text takes at most so many lines, words whole.
func narrowest(s string, lines int) int {
	w := longestWord(s)
	for len(wrap(s, w)) > lines {
		w++
	}
	return w
}

func (t Table) write(b *bytes.Buffer, list []column, width int) {
	t.fit(list, width)
	t.line(b, list, t.Head, true)
	for _, r := range t.Rows {
		t.line(b, list, r, false)
	}
}

// line writes a row, whose cells may take several lines. A heading ends at the line above the
// first row, other cells begin at the first of their lines.
func (t Table) line(b *bytes.Buffer, list []column, row []string, head bool) {
	cells := make([][]string, len(list))
	most := 1
	for i, c := range list {
		if c.at < len(row) {
			cells[i] = wrap(row[c.at], c.width)
			most = max(most, len(cells[i]))
		}
	}
	for n := range most {
		var line strings.Builder
		for i, c := range list {
			at := n
			if head {
				at -= most - len(cells[i])
			}
			cell := ""
			if at >= 0 && at < len(cells[i]) {
				cell = cells[i][at]
			}
			pad := strings.Repeat(" ", max(c.width-letters(cell), 0))
			if i > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			if c.text {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

// Paragraph is text whose lines have Width letters at most. It ends
// without a new line.
func Paragraph(text string) string { return strings.Join(wrap(text, Width), "\n") }

// wrap breaks text at blanks into lines of so many letters, and words that are longer.
func wrap(s string, width int) (lines []string) {
	if letters(s) <= width {
		return []string{s}
	}
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && letters(line)+1+letters(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for letters(word) > width {
			r := []rune(word)
			lines, word = append(lines, string(r[:width])), string(r[width:])
		}
		line = word
	}
	return append(lines, line)
}

func letters(s string) int { return utf8.RuneCountInString(s) }

func longestWord(s string) (n int) {
	for _, word := range strings.Fields(s) {
		n = max(n, letters(word))
	}
	return n
}
