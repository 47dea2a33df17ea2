// Package top draws the live picture as text, for a terminal: links, nodes, connections and
// events as lists that are sorted, and any of the last ten minutes. It reads no keys and writes
// nowhere. Pure.
package top

import (
	"slices"
	"time"

	"weft/internal/live"
)

// Screen is what a terminal shows, and what its user has chosen. The zero value shows that
// nothing is known yet. It is not safe for concurrent use.
type Screen struct {
	Width, Height int
	Colour        bool   // colours may be used; what is selected and what is down is seen without
	Note          string // a line for the user, until the next key

	fabric *live.Fabric
	ring   live.Ring
	seq    uint64 // the frame that is shown; 0: the latest
	list   int    // which list is shown
	chosen [len(lists)]choice
}

// choice is what has been chosen of a list.
type choice struct {
	sort    int // a column
	reverse bool
	key     string // of the row that is selected; "": the first
	first   int    // row that is shown
}

// The lists.
const (
	ofLinks = iota
	ofNodes
	ofConns
	ofEvents
)

var lists = [...]string{ofLinks: "links", ofNodes: "nodes", ofConns: "connections", ofEvents: "events"}

// Keys are what Key knows, for help.
const Keys = "1-4 lists ↑↓ s sort r reverse space pause ←→ [] in time end now w write q quit"

// Add takes a frame, newer than those before, and the fabric that it is of.
func (s *Screen) Add(fabric *live.Fabric, f *live.Frame) {
	if s.fabric == nil || s.fabric.Version != fabric.Version {
		s.seq = 0
	}
	s.fabric = fabric
	s.ring.Add(f)
}

// Shown is the frame that is shown, and its fabric; nil if there is none yet.
func (s *Screen) Shown() (*live.Fabric, *live.Frame) {
	if s.seq != 0 {
		if f := s.ring.Frame(s.seq); f != nil {
			return s.fabric, f
		}
		if frames := s.ring.Frames(); len(frames) > 0 { // it is too old by now
			s.seq = frames[0].Seq
			return s.fabric, frames[0]
		}
	}
	return s.fabric, s.ring.Latest()
}

// Live reports whether the latest frame is shown.
func (s *Screen) Live() bool { return s.seq == 0 }

// Key does what a key is for; one that is for nothing is ignored. Names are bubbletea's.
func (s *Screen) Key(key string) {
	s.Note = ""
	c := &s.chosen[s.list]
	switch key {
	case "1", "2", "3", "4":
		s.list = int(key[0] - '1')
	case "tab":
		s.list = (s.list + 1) % len(lists)
	case "shift+tab":
		s.list = (s.list + len(lists) - 1) % len(lists)
	case "s":
		c.sort = (c.sort + 1) % len(columnsOf[s.list])
		c.reverse = false
	case "r":
		c.reverse = !c.reverse
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup":
		s.move(-max(s.room()-1, 1))
	case "pgdown":
		s.move(max(s.room()-1, 1))
	case "home", "g":
		s.move(-1 << 30)
	case "G":
		s.move(1 << 30)
	case " ":
		if _, f := s.Shown(); s.seq == 0 && f != nil {
			s.seq = f.Seq
		} else {
			s.seq = 0
		}
	case "left", "h":
		s.goBack(-1)
	case "right", "l":
		s.goBack(1)
	case "[":
		s.goTo(-10 * time.Second)
	case "]":
		s.goTo(10 * time.Second)
	case "end", "esc":
		s.seq = 0
	}
}

// goBack shows the frame that is so many behind the one that is shown; beyond the latest it is
// live again.
func (s *Screen) goBack(by int) {
	frames := s.ring.Frames()
	_, now := s.Shown()
	i := slices.Index(frames, now)
	if now == nil || i < 0 {
		return
	}
	i = max(i+by, 0)
	if i >= len(frames)-1 && by > 0 {
		s.seq = 0
		return
	}
	s.seq = frames[min(i, len(frames)-1)].Seq
}

// goTo shows the frame of so much later, or earlier.
func (s *Screen) goTo(by time.Duration) {
	_, now := s.Shown()
	if now == nil {
		return
	}
	f := s.ring.At(now.At.Add(by))
	if s.seq = f.Seq; by > 0 && f == s.ring.Latest() {
		s.seq = 0
	}
}

// move selects a row that is so many below.
func (s *Screen) move(by int) {
	rows, c := s.rows(), &s.chosen[s.list]
	if len(rows) == 0 {
		return
	}
	at := min(max(s.selected(rows)+by, 0), len(rows)-1)
	c.key = rows[at].key
}

// selected is the position of the row that is selected; the first where it is gone.
func (s *Screen) selected(rows []row) int {
	c := &s.chosen[s.list]
	return max(slices.IndexFunc(rows, func(r row) bool { return r.key == c.key }), 0)
}
