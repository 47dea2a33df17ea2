package top

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"weft/internal/live"
)

// The least that is drawn; a smaller terminal shows a part of it.
const leastWidth, leastHeight = 40, 10

// frameLines are those around the rows: what, totals, time line, lists, head, keys.
const frameLines = 6

// mostDetails is how many lines there are about the row that is selected.
const mostDetails = 7

// room is how many rows there is room for.
func (s *Screen) room() int {
	rows := s.rows()
	return s.roomFor(len(s.details(rows, s.selected(rows))))
}

func (s *Screen) roomFor(details int) int {
	return max(max(s.Height, leastHeight)-frameLines-min(details, mostDetails, max(s.Height-frameLines-4, 0)), 1)
}

// View is the screen: Height lines, of at most Width letters each.
func (s *Screen) View() string {
	width := max(s.Width, leastWidth)
	fabric, frame := s.Shown()
	if frame == nil {
		return "weft top: asking ...\n" + s.Note
	}
	rows := s.rows()
	at := s.selected(rows)
	details := s.details(rows, at)
	room := s.roomFor(len(details))
	c := &s.chosen[s.list]
	c.first = min(max(c.first, at-room+1), at, max(len(rows)-room, 0))
	lines := []string{s.title(fabric, frame), totals(&frame.Total), s.timeLine(frame, width), s.tabs(), s.head()}
	head := len(lines)
	for i := range room {
		line := ""
		if n := c.first + i; n < len(rows) {
			line = s.line(rows[n], n == at, width)
		}
		lines = append(lines, line)
	}
	if n := min(len(details), max(s.Height, leastHeight)-frameLines-room); n > 0 {
		lines = append(lines, details[:n]...)
	}
	last := Keys
	switch {
	case s.Note != "":
		last = s.Note
	case frame.Trouble != "":
		last = frame.Trouble
	}
	lines = append(lines, last)
	for i, line := range lines {
		if i < head || i >= head+room { // rows are cut before they get colours
			lines[i] = cut(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func (s *Screen) title(fabric *live.Fabric, f *live.Frame) string {
	how := "live"
	if !s.Live() {
		latest := s.ring.Latest()
		how = fmt.Sprintf("PAUSED, %v ago", latest.At.Sub(f.At).Round(time.Second))
	}
	return fmt.Sprintf("weft top  %s  %s  %s  frame %d", fabric.Name, f.At.Format(time.TimeOnly), how, f.Seq)
}

func totals(t *live.Total) string {
	delivered := rate(t.Delivered)
	if !strings.Contains(delivered, " ") {
		delivered += " "
	}
	return fmt.Sprintf("delivered %sbit/s  busiest %s  longest queue %sB  drops %d  down %d  connections %d", delivered, percent(t.Use), size(t.Queue), t.Drops, t.Down, t.Conns)
}

// ramp are letters for how much, from nothing to all.
const ramp = " .:-=+*#%@"

// timeLine is how busy the fabric was in the frames that are kept, with a mark at the one that is
// shown and at those with failures.
func (s *Screen) timeLine(shown *live.Frame, width int) string {
	frames := s.ring.Frames()
	most := max(width-12, 10)
	if len(frames) > most {
		frames = frames[len(frames)-most:]
	}
	var b strings.Builder
	for _, f := range frames {
		letter := ramp[min(int(math.Ceil(max(f.Total.Use, 0)*float64(len(ramp)-1))), len(ramp)-1)]
		for _, e := range f.Events {
			if e.Kind == live.EventDown || e.Kind == live.EventFail {
				letter = '!'
			}
		}
		if f == shown && !s.Live() {
			letter = '^'
		}
		b.WriteByte(letter)
	}
	return fmt.Sprintf("busiest %*s", most, "|"+b.String()+"|")
}

func (s *Screen) tabs() string {
	var b strings.Builder
	for i, name := range lists {
		form := " %d: %s "
		if i == s.list {
			form = "[%d: %s]"
		}
		fmt.Fprintf(&b, form+" ", i+1, name)
	}
	c := s.chosen[s.list]
	way := ""
	if c.reverse {
		way = ", reversed"
	}
	if s.list == ofEvents {
		return b.String() + "the latest first" + way
	}
	return b.String() + "sorted by " + columnsOf[s.list][c.sort].head + way
}

func (s *Screen) head() string {
	cells := make([]string, len(s.columns()))
	for i, c := range s.columns() {
		cells[i] = c.head
	}
	return " " + s.cells(cells)
}

// cells lays cells side by side.
func (s *Screen) cells(cells []string) string {
	var b strings.Builder
	columns := s.columns()
	for i, c := range columns {
		cell := cut(cells[i], c.width)
		pad := strings.Repeat(" ", c.width-utf8.RuneCountInString(cell))
		if i == len(columns)-1 && c.text {
			cell, pad = cells[i], ""
		}
		if c.text {
			cell += pad
		} else {
			cell = pad + cell
		}
		b.WriteString(" " + cell)
	}
	return strings.TrimPrefix(b.String(), " ")
}

// The ways a terminal shows letters.
const (
	plain    = "\x1b[0m"
	reversed = "\x1b[7m"
	red      = "\x1b[31m"
)

func (s *Screen) line(r row, selected bool, width int) string {
	mark := " "
	if r.bad {
		mark = "!"
	}
	if selected {
		mark = ">"
	}
	line := cut(mark+s.cells(r.cells), width)
	switch {
	case !s.Colour:
	case selected:
		line = reversed + line + strings.Repeat(" ", max(width-utf8.RuneCountInString(line), 0)) + plain
	case r.bad:
		line = red + line + plain
	}
	return line
}

// cut leaves out what does not fit, and what a terminal would take for a command.
func cut(s string, width int) string {
	s = live.Printable(s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width])
}

// bar is a bar of so many letters.
func bar(part float64, letters int) string {
	n := int(math.Round(min(max(part, 0), 1) * float64(letters)))
	return strings.Repeat("#", n) + strings.Repeat(".", letters-n)
}

func part(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// flow is one direction of a link: how much of it is used, as a bar, and what it carries.
func flow(f live.Flow, letters int) string {
	return bar(f.Use, letters) + fmt.Sprintf(" %7s", rate(f.Rate))
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

// rate writes bit/s with three digits and the letter of a unit.
func rate(bits float64) string { return short(bits, 1000, " k", " M", " G", " T") }

// size writes bytes so.
func size(bytes uint64) string { return short(float64(bytes), 1000, "k", "M", "G", "T") }

func short(x, thousand float64, units ...string) string {
	unit := ""
	for _, u := range units {
		if x < 999.5 {
			break
		}
		x, unit = x/thousand, u
	}
	digits := 0
	switch {
	case x == 0 || unit == "" && x == math.Trunc(x):
	case x < 9.995:
		digits = 2
	case x < 99.95:
		digits = 1
	}
	return fmt.Sprintf("%.*f%s", digits, x, unit)
}
