package live

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Meter makes Frames of Samples, each by what has been counted since the one before. The zero
// value is ready. It is not safe for concurrent use.
type Meter struct {
	fabric *Fabric
	last   Sample
	conns  map[string]ConnSample
	ways   map[wayKey]WaySample
	frame  Frame             // the latest
	drops  map[int]time.Time // when a link's queues were last seen to drop
}

type wayKey struct{ host, bounce, uplink string }

// Next returns the Frame of a Sample of a fabric. Of another fabric than the latest, or after a
// Sample that is not newer, no rates are known. marks are events that others tell of.
func (m *Meter) Next(fab *Fabric, sample Sample, marks ...Event) *Frame {
	s := sample.bounded(len(fab.Links))
	before := &m.frame
	first := m.fabric == nil || m.fabric.Version != fab.Version || !s.At.After(m.last.At)
	seconds := 0.0
	if !first {
		seconds = s.At.Sub(m.last.At).Seconds()
	}
	f := &Frame{Seq: m.frame.Seq + 1, At: s.At, Seconds: round(seconds), Fabric: fab.Version,
		Links: make([]LinkFrame, len(fab.Links)), Conns: []Conn{}, Ways: []Way{},
		Hosts: some(s.Hosts), Suspects: some(s.Suspects), Failures: some(s.Failures),
		Trouble: s.Trouble, More: s.more}
	for i := range f.Links {
		var was *LinkSample
		if !first {
			was = &m.last.Links[i]
		}
		f.Links[i] = linkFrame(&fab.Links[i], &s.Links[i], was, s.At, m.last.At)
	}
	f.suspect(fab)
	m.addConns(f, &s, seconds)
	m.addWays(f, &s, seconds)
	f.total(fab)
	if m.drops == nil || first {
		m.drops = make(map[int]time.Time)
	}
	e := eventer{fabric: fab, before: before, now: f, drops: m.drops}
	f.Events = e.events(first, marks)
	m.fabric, m.last, m.frame = fab, s.Sample, *f
	return f
}

// boundedSample is a Sample within the bounds, with a LinkSample for each link.
type boundedSample struct {
	Sample
	more int
}

func (s Sample) bounded(links int) boundedSample {
	b := boundedSample{Sample: s}
	if len(s.Links) != links { // of another fabric: nothing is known
		b.Links = make([]LinkSample, links)
	}
	b.Conns = within(s.Conns, MaxConns, &b.more)
	b.Ways = within(s.Ways, MaxWays, &b.more)
	b.Hosts = each(within(s.Hosts, MaxHosts, &b.more), func(h *Host) {
		h.Name, h.Verdict, h.Why, h.About = short(h.Name), short(h.Verdict), short(h.Why), short(h.About)
	})
	b.Suspects = each(within(s.Suspects, MaxSuspects, &b.more), func(u *Suspect) {
		u.Host, u.Why, u.Places = short(u.Host), short(u.Why), each(within(u.Places, maxPlaces, &b.more), func(p *string) { *p = short(*p) })
	})
	b.Failures = each(within(s.Failures, MaxFailures, &b.more), func(f *Failure) { f.Target, f.Mode = short(f.Target), short(f.Mode) })
	b.Conns = each(b.Conns, func(c *ConnSample) {
		c.From, c.To, c.Local, c.Remote, c.State = short(c.From), short(c.To), short(c.Local), short(c.Remote), short(c.State)
	})
	b.Ways = each(b.Ways, func(w *WaySample) {
		w.Host, w.Bounce, w.Uplink, w.State, w.Why = short(w.Host), short(w.Bounce), short(w.Uplink), short(w.State), short(w.Why)
	})
	b.Trouble = short(s.Trouble)
	return b
}

// each changes a copy of a list.
func each[T any](all []T, change func(*T)) []T {
	all = slices.Clone(all)
	for i := range all {
		change(&all[i])
	}
	return all
}

func within[T any](all []T, most int, more *int) []T {
	if n := len(all) - most; n > 0 {
		*more += n
		return all[:most]
	}
	return all
}

// Printable has a space for each control character, which a terminal would take for a command.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// short makes a text of others fit to be shown: printable, and not too long.
func short(text string) string {
	text = Printable(text[:min(len(text), 4*maxText)])
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// some is for JSON, in which a list is never null.
func some[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// linkFrame is a link's part of a frame; was nil: nothing is known of before.
func linkFrame(l *Link, now, was *LinkSample, at, before time.Time) LinkFrame {
	if was == nil {
		return LinkFrame{State: now.State, Up: flow(l, &now.Up, nil, at, before), Down: flow(l, &now.Down, nil, at, before)}
	}
	return LinkFrame{State: now.State, Up: flow(l, &now.Up, &was.Up, at, before), Down: flow(l, &now.Down, &was.Down, at, before)}
}

// flow is what a direction has done between two samples; before nil: nothing is known.
func flow(l *Link, now, before *Counters, at, was time.Time) (f Flow) {
	f.Queue = now.Queue
	if before == nil || !now.Known || !before.Known {
		return f
	}
	seconds := cmp.Or(now.At, at).Sub(cmp.Or(before.At, was)).Seconds()
	if seconds <= 0 || now.Bytes < before.Bytes { // built anew
		return f
	}
	f.Rate = round(float64(now.Bytes-before.Bytes) * 8 / seconds)
	if l.Rate > 0 {
		f.Use = round(f.Rate / l.Rate)
	}
	f.Drops = since(now.Drops, before.Drops)
	if sent := since(now.Packets, before.Packets); f.Drops > 0 {
		f.Loss = round(float64(f.Drops) / float64(f.Drops+sent))
	}
	return f
}

// since is by how much a counter has risen that may be modulo 2³². One that began anew has not.
func since(now, before uint64) uint64 {
	switch {
	case now >= before:
		return now - before
	case before < 1<<32 && before-now > 1<<31: // over the edge
		return 1<<32 - before + now
	}
	return 0
}

// round leaves three significant digits, and nothing of what is below a thousandth.
func round(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(x) < 5e-4 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-2)
	if unit >= 1 {
		return math.Round(x/unit) * unit
	}
	perUnit := math.Round(1 / unit) // a power of ten, which is exact
	return math.Round(x*perUnit) / perUnit
}

func (m *Meter) addConns(f *Frame, s *boundedSample, seconds float64) {
	known := make(map[string]ConnSample, len(s.Conns))
	for _, c := range s.Conns {
		n := Conn{From: c.From, To: c.To, Local: c.Local, Remote: c.Remote, State: c.State, Sent: c.Sent, Received: c.Received,
			Waiting: c.Waiting, AllResent: c.Resent, RTT: round(c.RTT)}
		if was, ok := m.conns[n.Key()]; ok && seconds > 0 && c.Sent >= was.Sent && c.Received >= was.Received {
			n.Sends, n.Gets = round(float64(c.Sent-was.Sent)*8/seconds), round(float64(c.Received-was.Received)*8/seconds)
			n.Resent, n.OutOfOrder = since(c.Resent, was.Resent), since(c.OutOfOrder, was.OutOfOrder)
		}
		known[n.Key()] = c
		f.Conns = append(f.Conns, n)
	}
	m.conns = known
	slices.SortFunc(f.Conns, func(a, b Conn) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Remote, b.Remote), cmp.Compare(a.Local, b.Local))
	})
}

func (m *Meter) addWays(f *Frame, s *boundedSample, seconds float64) {
	known := make(map[wayKey]WaySample, len(s.Ways))
	sums := make(map[string]float64)
	for _, w := range s.Ways {
		n := Way{Host: w.Host, Bounce: w.Bounce, Uplink: w.Uplink, State: w.State, Why: w.Why, RTT50: round(w.RTT50), RTT99: round(w.RTT99), Loss: round(w.Loss)}
		k := wayKey{w.Host, w.Bounce, w.Uplink}
		if was, ok := m.ways[k]; ok && seconds > 0 && w.Bytes >= was.Bytes {
			n.Rate = round(float64(w.Bytes-was.Bytes) * 8 / seconds)
			sums[w.Host] += n.Rate
		}
		known[k] = w
		f.Ways = append(f.Ways, n)
	}
	m.ways = known
	for i := range f.Ways {
		if sum := sums[f.Ways[i].Host]; sum > 0 {
			f.Ways[i].Share = round(f.Ways[i].Rate / sum)
		}
	}
	slices.SortFunc(f.Ways, func(a, b Way) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Bounce, b.Bounce), cmp.Compare(a.Uplink, b.Uplink))
	})
}

// suspect marks links that hosts blame. A switch or host that is blamed is marked by whoever
// draws it.
func (f *Frame) suspect(fab *Fabric) {
	if len(f.Suspects) == 0 {
		return
	}
	blamed := make(map[string]bool)
	for _, s := range f.Suspects {
		for _, p := range s.Places {
			blamed[p] = true
		}
	}
	for i := range f.Links {
		if l := &f.Links[i]; blamed[fab.Links[i].Name] {
			l.State = max(l.State, Suspected)
		}
	}
}

// total sums up the frame.
func (f *Frame) total(fab *Fabric) {
	t := Total{Conns: len(f.Conns)}
	for i := range f.Links {
		l := &f.Links[i]
		if l.State >= Silent {
			t.Down++
		}
		for _, d := range []*Flow{&l.Up, &l.Down} {
			t.Drops += d.Drops
			t.Queue = max(t.Queue, d.Queue)
			t.Use = max(t.Use, d.Use)
		}
		if fab.Nodes[fab.Links[i].A].Tier > 0 {
			continue
		}
		t.Delivered += l.Down.Rate
		if fab.Kind == KindHost {
			t.Delivered += l.Up.Rate
		}
	}
	t.Delivered = round(t.Delivered)
	f.Total = t
}
