package table

import (
	"bytes"
	"io"
	"strings"
)

// Writer makes tables of lines whose cells end with tabs or the line, as package text/tabwriter
// does, in Width. The first line is the head; an empty line ends a table, and the next one has
// another head. It is not safe for concurrent use.
type Writer struct {
	w    io.Writer
	text int
	b    bytes.Buffer
}

// NewWriter returns one of tables with so many columns of text (Table.Text).
func NewWriter(w io.Writer, text int) *Writer { return &Writer{w: w, text: text} }

// Write is io.Writer's. Its error is nil.
func (w *Writer) Write(p []byte) (int, error) { return w.b.Write(p) }

// Flush writes what has been written as tables, and forgets it. A tab at the end of a line begins
// no cell. Its errors are those of the writer below.
func (w *Writer) Flush() error {
	var out bytes.Buffer
	var t *Table
	end := func() {
		if t != nil {
			t.Write(&out, Width) // a Buffer does not fail
			t = nil
		}
	}
	for line := range strings.Lines(w.b.String()) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\t")
		switch cells := strings.Split(line, "\t"); {
		case line == "":
			end()
			out.WriteByte('\n')
		case t == nil:
			t = &Table{Head: cells, Text: w.text}
		default:
			for len(t.Head) < len(cells) {
				t.Head = append(t.Head, "")
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	end()
	w.b.Reset()
	_, err := w.w.Write(out.Bytes())
	return err
}

// Aligned writes rows, the head first, as a table whose first column is text.
func Aligned(w io.Writer, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	return Table{Head: rows[0], Rows: rows[1:], Text: 1}.Write(w, Width)
}
