package top

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weft/internal/live"
)

// day is a moment of no meaning.
var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fabric has hosts, two switches above them, and a link from each host to each.
func fabric(hosts int) *live.Fabric {
	f := &live.Fabric{Version: 1, Kind: live.KindLab, Name: "test", Nodes: []live.Node{{Name: "s0", Tier: 1}, {Name: "s1", Tier: 1}}}
	for i := range hosts {
		f.Nodes = append(f.Nodes, live.Node{Name: fmt.Sprintf("h%d", i)})
		for s := range 2 {
			f.Links = append(f.Links, live.Link{Name: fmt.Sprintf("h%d-s%d", i, s), A: 2 + i, B: s, Rate: 20e6, Room: 75000})
		}
	}
	return f
}

// frame is a moment at which links carry what use says.
func frame(f *live.Fabric, seq uint64, use func(link int) float64) *live.Frame {
	out := &live.Frame{Seq: seq, At: day.Add(time.Duration(seq) * time.Second), Seconds: 1, Fabric: f.Version}
	for i := range f.Links {
		u := use(i)
		out.Links = append(out.Links, live.LinkFrame{State: live.Working, Up: live.Flow{Rate: u * 20e6, Use: u, Queue: uint64(u * 75000)}})
		out.Total.Use = max(out.Total.Use, u)
	}
	out.Conns = []live.Conn{{From: "h0", To: "h1", Local: "10.0.0.2:5001", Remote: "10.0.1.2:40000", State: "established", Sends: 7.5e6, RTT: 3.25},
		{From: "h1", To: "h0", Local: "10.0.1.2:40000", Remote: "10.0.0.2:5001", Gets: 7.5e6}}
	out.Ways = []live.Way{{Host: "h0", Bounce: "s0", Share: 0.25, Rate: 2e6}, {Host: "h0", Bounce: "s1", Share: 0.75, Rate: 6e6}, {Host: "h1", Bounce: "s1", Share: 1}}
	return out
}

func screen(frames int) *Screen {
	f := fabric(6)
	s := &Screen{Width: 80, Height: 24}
	for i := range frames {
		s.Add(f, frame(f, uint64(i+1), func(link int) float64 { return float64((link+i)%12) / 12 }))
	}
	return s
}

// line is the first line of a view that has a word.
func line(t *testing.T, s *Screen, word string) string {
	t.Helper()
	for l := range strings.Lines(s.View()) {
		if strings.Contains(l, word) {
			return l
		}
	}
	t.Fatalf("no %q in\n%s", word, s.View())
	return ""
}

// Whatever the size of the terminal: no line is too wide, and there are as many as fit.
func TestView_fits(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	keys := []string{"1", "2", "3", "4", "tab", "shift+tab", "s", "r", "up", "down", "pgup", "pgdown", "home", "G", " ", "left", "right", "[", "]", "end", "x", "esc"}
	for _, frames := range []int{0, 1, 30} {
		s := screen(frames)
		for range 2000 {
			s.Width, s.Height = 1+r.IntN(200), 1+r.IntN(60)
			s.Key(keys[r.IntN(len(keys))])
			lines := strings.Split(s.View(), "\n")
			if frames > 0 && len(lines) != max(s.Height, leastHeight) {
				t.Fatalf("%dx%d: %d lines\n%s", s.Width, s.Height, len(lines), s.View())
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l); n > max(s.Width, leastWidth) {
					t.Fatalf("%dx%d: a line of %d letters: %q", s.Width, s.Height, n, l)
				}
			}
		}
	}
}

// All lists at 80x24 have what they are for.
func TestView_lists(t *testing.T) {
	s := screen(3)
	if l := line(t, s, ">"); !strings.Contains(l, "92 %") || !strings.Contains(l, "18.3 M") {
		t.Errorf("the busiest link: %q", l)
	}
	s.Key("2")
	if l := line(t, s, "h0 "); !strings.Contains(l, "2 of 2") {
		t.Errorf("a node: %q", l)
	}
	s.Key("3")
	if l := line(t, s, "> "); !strings.Contains(l, "7.50 M") || !strings.Contains(l, "10.0.1.2:40000") || !strings.Contains(l, "3.2") {
		t.Errorf("a connection: %q", l)
	}
	// The shares of the connection that is selected, and of no other.
	if l := line(t, s, "by s0"); !strings.Contains(l, "#####............... ") || !strings.Contains(l, " 25.0 %") {
		t.Errorf("a path: %q", l)
	}
	s.Key("down")
	if v := s.View(); strings.Contains(v, "by s0") || !strings.Contains(v, "100.0 %") {
		t.Errorf("the other connection's paths:\n%s", v)
	}
	s.Key("4")
	f := frame(s.fabric, 4, func(int) float64 { return 0 })
	f.Events = []live.Event{{At: f.At, Kind: live.EventDown, What: "h0-s0", Text: "h0-s0 is down"}}
	s.Add(s.fabric, f)
	if l := line(t, s, "h0-s0 is down"); !strings.Contains(l, "03:04:09") {
		t.Errorf("an event: %q", l)
	}
}

// Sorting goes by numbers, the greatest first, and by names; reversed, the other way.
func TestKey_sorts(t *testing.T) {
	s := screen(1)
	first := func() string { return s.rows()[0].key }
	if first() != "h5-s1" {
		t.Errorf("by use: %s", first())
	}
	s.Key("r")
	if first() != "h0-s0" {
		t.Errorf("reversed: %s", first())
	}
	s.Key("s")
	if first() != "h0-s0" || !strings.Contains(s.View(), "sorted by link") {
		t.Errorf("by name: %s\n%s", first(), s.View())
	}
	s.Key("r")
	if first() != "h5-s1" {
		t.Errorf("by name, reversed: %s", first())
	}
	// What is selected stays selected where it goes.
	s.Key("down")
	key := s.chosen[ofLinks].key
	s.Key("r")
	if rows := s.rows(); rows[s.selected(rows)].key != key {
		t.Errorf("%s was selected, now %s", key, rows[s.selected(rows)].key)
	}
}

// Paused, a frame stays while others come; back in time; and live again.
func TestKey_time(t *testing.T) {
	s := screen(60)
	seq := func() uint64 { _, f := s.Shown(); return f.Seq }
	s.Key(" ")
	s.Add(s.fabric, frame(s.fabric, 61, func(int) float64 { return 0 }))
	if seq() != 60 || s.Live() || !strings.Contains(s.View(), "PAUSED, 1s ago") {
		t.Errorf("paused at 60: %d\n%s", seq(), s.View())
	}
	s.Key("left")
	s.Key("left")
	if seq() != 58 {
		t.Errorf("two back: %d", seq())
	}
	s.Key("[")
	if seq() != 48 {
		t.Errorf("ten seconds back: %d", seq())
	}
	s.Key("right")
	s.Key("]")
	if seq() != 59 {
		t.Errorf("forward: %d", seq())
	}
	s.Key("]")
	if seq() != 61 || !s.Live() {
		t.Errorf("beyond the latest: %d, %v", seq(), s.Live())
	}
	for range 100 {
		s.Key("left")
	}
	if seq() != 1 {
		t.Errorf("the oldest: %d", seq())
	}
	// It gets too old: the oldest that there is is shown.
	for i := range uint64(700) {
		s.Add(s.fabric, frame(s.fabric, 62+i, func(int) float64 { return 0 }))
	}
	if got := seq(); got != s.ring.Frames()[0].Seq || got == 1 || s.Live() {
		t.Errorf("after ten minutes: %d", got)
	}
	s.Key("end")
	if !s.Live() {
		t.Error("end is not live")
	}
	// Another fabric: what was kept is gone.
	other := fabric(2)
	other.Version = 2
	s.Key(" ")
	s.Add(other, frame(other, 1000, func(int) float64 { return 0 }))
	if _, f := s.Shown(); !s.Live() || len(f.Links) != 4 {
		t.Errorf("another fabric: %v, %d links", s.Live(), len(f.Links))
	}
}

// Without colours all that colours say is there as letters.
func TestView_colours(t *testing.T) {
	s := screen(1)
	_, f := s.Shown()
	f.Links[0].State = live.Broken
	if v := s.View(); strings.Contains(v, "\x1b") || !strings.Contains(v, "!") {
		t.Errorf("%q", v)
	}
	s.Colour = true
	if v := s.View(); !strings.Contains(v, red) || !strings.Contains(v, reversed+">") {
		t.Errorf("%q", v)
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 7: "7", 0.5: "0.50", 999: "999", 999.6: "1.00k", 9.61e6: "9.61M", 97.6e6: "97.6M", 123.4e9: "123G", 5e15: "5000T"} {
		if got := short(x, 1000, "k", "M", "G", "T"); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}

// What others say is no command to the terminal.
func TestScreen_controlCharacters(t *testing.T) {
	f := fabric(2)
	f.Nodes[2].Name = "h0\x1b]0;evil\x07"
	f.Links[0].Name = "l\x1b[2J\r\n"
	now := frame(f, 1, func(int) float64 { return 1 })
	now.Trouble, now.Conns[0].From = "\x1b[31m\u009b", "a\x1bc"
	now.Hosts = []live.Host{{Name: f.Nodes[2].Name, Verdict: "\x1b", Why: "\a"}}
	now.Events = []live.Event{{Kind: live.EventMark, Text: "\x1b[H\n"}}
	s := &Screen{Width: 120, Height: 20, Note: "\x1bn"}
	s.Add(f, now)
	for list := range len(lists) {
		s.Key(fmt.Sprint(list + 1))
		if v := s.View(); strings.ContainsAny(v, "\x1b\a\r\u009b") || strings.Count(v, "\n") >= s.Height {
			t.Errorf("list %d: %q", list+1, v)
		}
	}
}
