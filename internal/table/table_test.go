package table

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func text(t *testing.T, x Table, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := x.Write(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite_layouts(t *testing.T) {
	rows := [][]string{{"kernel-ecmp", "53.5", "1.26"}, {"drb", "95.3", "7.10"}}
	for name, c := range map[string]struct {
		table Table
		width int
		want  string
	}{
		"room": {Table{Head: []string{"policy", "% of ideal", "Mbit/s"}, Rows: rows, Text: 1}, 100, `
policy       % of ideal  Mbit/s
kernel-ecmp        53.5    1.26
drb                95.3    7.10
`},
		"headings are wrapped": {Table{Head: []string{"policy", "% of ideal", "Mbit/s"}, Rows: rows, Text: 1}, 26, `
              % of
policy       ideal  Mbit/s
kernel-ecmp   53.5    1.26
drb           95.3    7.10
`},
		"it goes on below": {Table{Head: []string{"policy", "% of ideal", "Mbit/s"}, Rows: rows, Text: 1}, 18, `
              % of
policy       ideal
kernel-ecmp   53.5
drb           95.3

policy       Mbit/s
kernel-ecmp    1.26
drb            7.10
`},
		"text is wrapped": {Table{Head: []string{"fault", "what it does"}, Text: -1,
			Rows: [][]string{{"cut", "takes the cable between a leaf and a spine away"}}}, 30, `
fault  what it does
cut    takes the cable between
       a leaf and a spine away
`},
		"blank lines and columns without anything": {Table{Head: []string{"a", "", "b"}, Rows: [][]string{{"1", "", "2"}, nil, {"3"}}}, 30, `
a  b
1  2

3
`},
	} {
		if got := "\n" + text(t, c.table, c.width); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// Whatever a table has: no line is too wide, and every word of every cell is there, in as many
// places as the cell has, keys aside.
func TestWrite_fitsAndLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 4))
	serial := 0
	word := func(n int) string {
		serial++
		s := fmt.Sprintf("w%dx", serial)
		return s + strings.Repeat("µ", max(r.IntN(n)-len(s), 0))
	}
	for range 300 {
		columns, rows := 1+r.IntN(25), r.IntN(6)
		x := Table{Text: r.IntN(3), Keys: r.IntN(3)}
		words := make(map[string]bool) // true: of a key
		cell := func(column int) string {
			var s []string
			for range 1 + r.IntN(4) {
				w := word(12)
				words[w] = column < max(x.Keys, 1)
				s = append(s, w)
			}
			if column >= x.Text {
				s = s[:1]
			}
			return strings.Join(s, " ")
		}
		for i := range columns {
			x.Head = append(x.Head, cell(i))
		}
		for range rows {
			var row []string
			for i := range columns {
				row = append(row, cell(i))
			}
			x.Rows = append(x.Rows, row)
		}
		for w := range words { // those that cells have
			if !strings.Contains(strings.Join(x.Head, " ")+" "+fmt.Sprint(x.Rows), w) {
				delete(words, w)
			}
		}
		got := text(t, x, Width)
		for line := range strings.Lines(got) {
			if n := letters(strings.TrimSuffix(line, "\n")); n > Width {
				t.Fatalf("a line has %d letters:\n%s", n, got)
			}
		}
		for w, key := range words {
			if n := strings.Count(got, w); n == 0 || n > 1 && !key {
				t.Fatalf("%s is there %d times:\n%s", w, n, got)
			}
		}
	}
}

func TestParagraph_keepsAllWords(t *testing.T) {
	text := strings.Repeat("Agents say hello every 20ms. ", 20) + "end"
	got := Paragraph(text)
	if strings.Join(strings.Fields(got), " ") != text || strings.HasSuffix(got, "\n") {
		t.Errorf("words changed:\n%s", got)
	}
	for _, line := range strings.Split(got, "\n") {
		if letters(line) > Width {
			t.Errorf("%d letters: %q", len(line), line)
		}
	}
}
