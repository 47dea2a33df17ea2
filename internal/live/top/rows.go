package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/internal/live"
)

// column is one of a list: its head, and how wide it is.
type column struct {
	head  string
	width int
	text  bool // flush left, and sorted upwards
}

var columnsOf = [len(lists)][]column{
	ofLinks:  {{"busier", 6, false}, {"link", 14, true}, {"state", 9, true}, {"up", 13, false}, {"down", 13, false}, {"queue", 6, false}, {"loss %", 6, false}, {"drops", 5, false}},
	ofNodes:  {{"sends", 8, false}, {"node", 14, true}, {"tier", 4, false}, {"gets", 8, false}, {"links", 8, false}, {"queue", 7, false}, {"drops", 6, false}, {"verdict", 24, true}},
	ofConns:  {{"sends", 8, false}, {"from", 8, true}, {"to", 8, true}, {"remote", 21, true}, {"gets", 8, false}, {"RTT ms", 6, false}, {"resent", 6, false}, {"waits", 7, false}},
	ofEvents: {{"at", 8, true}, {"kind", 8, true}, {"what", 16, true}, {"what happened", 40, true}},
}

// wideLinks are the columns of links where there is room for more bars.
var wideLinks = []column{{"busier", 6, false}, {"link", 20, true}, {"state", 9, true}, {"up", 18, false}, {"down", 18, false}, {"queue", 14, false}, {"loss %", 13, false}, {"drops", 6, false}}

// roomForMore is the width from which on they are shown.
const roomForMore = 116

func (s *Screen) wide() bool { return s.Width >= roomForMore }

// columns are those of the list that is shown.
func (s *Screen) columns() []column {
	if s.list == ofLinks && s.wide() {
		return wideLinks
	}
	return columnsOf[s.list]
}

// row is one of a list. by are what its cells are sorted by where they are no text.
type row struct {
	key   string
	cells []string
	by    []float64
	bad   bool
}

// rows are those of the list that is shown, sorted as is chosen.
func (s *Screen) rows() (all []row) {
	fabric, frame := s.Shown()
	if frame == nil {
		return nil
	}
	switch s.list {
	case ofLinks:
		all = linkRows(fabric, frame, s.wide())
	case ofNodes:
		all = nodeRows(fabric, frame)
	case ofConns:
		all = connRows(frame)
	case ofEvents:
		return s.eventRows(frame) // by time
	}
	c := s.chosen[s.list]
	text := columnsOf[s.list][c.sort].text
	slices.SortStableFunc(all, func(a, b row) int {
		order := cmp.Compare(b.by[c.sort], a.by[c.sort])
		if text {
			order = cmp.Compare(a.cells[c.sort], b.cells[c.sort])
		}
		if c.reverse {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.key, b.key))
	})
	return all
}

func linkRows(fabric *live.Fabric, f *live.Frame, wide bool) (all []row) {
	letters := 5
	if wide {
		letters = 10
	}
	for i, l := range f.Links {
		link := fabric.Links[i]
		busier, queue, loss, drops := l.Busier(), max(l.Up.Queue, l.Down.Queue), max(l.Up.Loss, l.Down.Loss), l.Up.Drops+l.Down.Drops
		all = append(all, row{key: link.Name, bad: l.State > live.Working,
			cells: []string{percent(busier.Use), link.Name, l.State.String(), flow(l.Up, letters), flow(l.Down, letters), size(queue), fmt.Sprintf("%.2f", 100*loss), fmt.Sprint(drops)},
			by:    []float64{busier.Use, 0, 0, l.Up.Rate, l.Down.Rate, float64(queue), loss, float64(drops)}})
		if wide {
			all[i].cells[5] = bar(part(queue, link.Room), 6) + fmt.Sprintf(" %7s", size(queue))
			all[i].cells[6] = bar(loss, 6) + fmt.Sprintf(" %6.2f", 100*loss)
		}
		if busier.Use == 0 {
			all[i].by[0] = busier.Rate / 1e15 // where rates of links are not known
		}
	}
	return all
}

func nodeRows(fabric *live.Fabric, f *live.Frame) []row {
	type sums struct {
		sends, gets  float64
		links, works int
		queue, drops uint64
	}
	of := make([]sums, len(fabric.Nodes))
	for i, l := range f.Links {
		a, b := &of[fabric.Links[i].A], &of[fabric.Links[i].B]
		for _, end := range []struct {
			s         *sums
			out, into live.Flow
		}{{a, l.Up, l.Down}, {b, l.Down, l.Up}} {
			end.s.links++
			if l.State <= live.Working {
				end.s.works++
			}
			end.s.sends += end.out.Rate
			end.s.gets += end.into.Rate
			end.s.queue = max(end.s.queue, end.out.Queue)
			end.s.drops += end.out.Drops
		}
	}
	all := make([]row, len(of))
	for i, n := range fabric.Nodes {
		verdict := ""
		for _, h := range f.Hosts {
			if h.Name == n.Name {
				verdict = strings.TrimSuffix(h.Verdict+": "+h.Why, ": ")
			}
		}
		s := of[i]
		all[i] = row{key: n.Name, bad: s.works < s.links,
			cells: []string{rate(s.sends), n.Name, fmt.Sprint(n.Tier), rate(s.gets), fmt.Sprintf("%d of %d", s.works, s.links), size(s.queue), fmt.Sprint(s.drops), verdict},
			by:    []float64{s.sends, 0, float64(n.Tier), s.gets, float64(s.links - s.works), float64(s.queue), float64(s.drops), 0}}
	}
	return all
}

func connRows(f *live.Frame) (all []row) {
	for _, c := range f.Conns {
		all = append(all, row{key: c.Key(),
			cells: []string{rate(c.Sends), c.From, cmp.Or(c.To, "-"), c.Remote, rate(c.Gets), fmt.Sprintf("%.1f", c.RTT), fmt.Sprint(c.Resent), size(c.Waiting)},
			by:    []float64{c.Sends, 0, 0, 0, c.Gets, c.RTT, float64(c.Resent), float64(c.Waiting)}})
	}
	return all
}

// eventRows are those up to a frame, the newest first.
func (s *Screen) eventRows(until *live.Frame) (all []row) {
	for _, f := range slices.Backward(s.ring.Frames()) {
		if f.Seq > until.Seq {
			continue
		}
		for i, e := range slices.Backward(f.Events) {
			all = append(all, row{key: fmt.Sprintf("%d %d", f.Seq, i), bad: e.Kind == live.EventDown || e.Kind == live.EventFail || e.Kind == live.EventSuspect,
				cells: []string{e.At.Format(time.TimeOnly), e.Kind, e.What, e.Text}, by: make([]float64, 4)})
		}
	}
	if s.chosen[ofEvents].reverse {
		slices.Reverse(all)
	}
	return all
}

// details are lines about the row that is selected: a connection's paths with their shares, or a
// link's rates.
func (s *Screen) details(rows []row, at int) (lines []string) {
	fabric, frame := s.Shown()
	if frame == nil || len(rows) == 0 {
		return nil
	}
	switch s.list {
	case ofConns:
		for _, c := range frame.Conns {
			if c.Key() != rows[at].key {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s to %s %s, %s: sent %s, got %s, resent %d in all", c.From, c.Local, c.To, c.Remote, c.State, size(c.Sent), size(c.Received), c.AllResent))
			for _, w := range frame.Ways {
				if w.Host == c.From {
					lines = append(lines, fmt.Sprintf("  by %-14s %s %5.1f %%  %s  %s", w.Bounce, bar(w.Share, 20), 100*w.Share, rate(w.Rate), strings.TrimSpace(w.State+" "+w.Why)))
				}
			}
			return lines
		}
	case ofLinks:
		i := fabric.FindLink(rows[at].key)
		if i < 0 {
			return nil
		}
		l, link := frame.Links[i], fabric.Links[i]
		lines = append(lines, fmt.Sprintf("%s: %s to %s, %s: up %s, down %s; queue %s up, %s down of %s", link.Name, fabric.Nodes[link.A].Name, fabric.Nodes[link.B].Name, l.State,
			rate(l.Up.Rate), rate(l.Down.Rate), size(l.Up.Queue), size(l.Down.Queue), size(link.Room)))
		for _, p := range frame.Suspects {
			if slices.Contains(p.Places, link.Name) {
				lines = append(lines, fmt.Sprintf("  %s suspects it: %.1f %% lost; %s", p.Host, 100*p.Loss, p.Why))
			}
		}
	}
	return lines
}
