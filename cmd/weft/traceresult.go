package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weft/internal/hops"
	"weft/internal/table"
	"weft/topology"
)

// traceVersion rises when a key of traceJSON goes or comes to mean something else. New keys do
// not raise it.
const traceVersion = 1

// traceJSON is what weft trace prints with --json.
type traceJSON struct {
	Version  int         `json:"version"` // traceVersion
	From     string      `json:"from"`
	To       string      `json:"to"`
	Carrier  string      `json:"carrier"`
	Interval float64     `json:"interval_s"` // between two packets to one switch, after the first
	Paths    []tracePath `json:"paths"`
}

type tracePath struct {
	Path int        `json:"path"` // its number; -1: in the rack, without an outer header
	Via  string     `json:"via"`  // the bouncing switch
	Hops []traceHop `json:"hops"`
}

type traceHop struct {
	Hop      int             `json:"hop"`    // from 1
	Node     string          `json:"node"`   // who is to answer
	Header   string          `json:"header"` // whose TTL ends there: outer or inner
	Sent     int             `json:"sent"`
	Answered int             `json:"answered"`
	Lost     int             `json:"lost"`
	Min      float64         `json:"rtt_min_ms"`
	Median   float64         `json:"rtt_median_ms"` // of the latest 256
	Max      float64         `json:"rtt_max_ms"`
	Answers  []traceAnswerer `json:"answers"` // the most frequent first
}

type traceAnswerer struct {
	Address string `json:"address"`
	Node    string `json:"node,omitempty"` // whose address it is, if that is known
	Count   int    `json:"count"`
}

// result is for programs.
func (f *traceFlags) result(from tracePlace, to netip.Addr, w *hops.Walk) traceJSON {
	j := traceJSON{Version: traceVersion, From: from.self.String(), To: to.String(), Carrier: from.carrier.String(), Interval: f.interval.Seconds()}
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	for i, p := range w.Paths() {
		path := tracePath{Path: p.Number, Via: p.Via}
		for k, h := range p.Hops {
			s := w.Stats(i, k)
			header := "outer"
			if h.Inner {
				header = "inner"
			}
			hop := traceHop{Hop: k + 1, Node: h.Name, Header: header, Sent: s.Sent, Answered: s.Answered, Lost: s.Lost, Min: ms(s.Min), Median: ms(s.Median()), Max: ms(s.Max), Answers: []traceAnswerer{}}
			for _, a := range answerers(s) {
				hop.Answers = append(hop.Answers, traceAnswerer{a.String(), nodeAt(from.topology, a), s.From[a]})
			}
			path.Hops = append(path.Hops, hop)
		}
		j.Paths = append(j.Paths, path)
	}
	return j
}

// answerers are who has answered, the most frequent first.
func answerers(s *hops.Stats) []netip.Addr {
	list := slices.SortedFunc(maps.Keys(s.From), netip.Addr.Compare)
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return s.From[b] - s.From[a] })
	return list
}

// nodeAt is the name of whose address it is, "" if that is not known.
func nodeAt(t *topology.Topology, a netip.Addr) string {
	if id, ok := t.ByAddr(topology.Addr4(a)); ok {
		return t.Node(id).Name
	}
	if host, _, ok := t.HostAt(a); ok {
		return t.HostName(host)
	}
	return ""
}

// table is for people.
func (f *traceFlags) table(t *topology.Topology, w *hops.Walk) string {
	lines := table.Table{Head: []string{"PATH", "HOP", "SWITCH", "ANSWERS", "SENT", "LOSS", "MIN ms", "MEDIAN ms", "MAX ms"}, Text: 4, Keys: 3}
	for i, p := range w.Paths() {
		name := fmt.Sprintf("%d by %s", p.Number, p.Via)
		if p.Number < 0 {
			name = "in the rack"
		}
		for k, h := range p.Hops {
			s := w.Stats(i, k)
			row := []string{name, fmt.Sprint(k + 1), h.Name, f.who(t, h.Name, s), fmt.Sprint(s.Sent), "-", "-", "-", "-"}
			if s.Answered+s.Lost > 0 {
				row[5] = fmt.Sprintf("%.0f %%", 100*float64(s.Lost)/float64(s.Answered+s.Lost))
			}
			if s.Answered > 0 {
				row[6], row[7], row[8] = milliseconds(s.Min), milliseconds(s.Median()), milliseconds(s.Max)
			}
			lines.Rows = append(lines.Rows, row)
			name = ""
		}
	}
	var b strings.Builder
	lines.Write(&b, table.Width)
	return b.String()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/1e6) }

// who is who has answered.
func (f *traceFlags) who(t *topology.Topology, expected string, s *hops.Stats) string {
	var list []string
	for _, a := range answerers(s) {
		text := a.String()
		if name := nodeAt(t, a); name != "" && name != expected && !f.numeric {
			text = name + " " + text
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}
