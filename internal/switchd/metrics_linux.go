package switchd

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/metrics"
)

// collector returns what exports the agent's status.
func (d *daemon) collector() prometheus.Collector {
	return metrics.Collector(func(w metrics.Writer) {
		s := d.status()
		s.write(w)
	})
}

// write exports a status.
func (s *Status) write(w metrics.Writer) {
	out := metrics.Switch{
		Name: s.Switch, LinksDown: len(s.Down), Changes: s.Changes, Hellos: s.HellosSent, Updates: s.UpdatesSent,
		Unreadable: s.MeterError != "" || s.BalanceError != "" || s.CounterError != "",
	}
	for _, n := range s.Neighbours {
		out.Neighbours = append(out.Neighbours, metrics.Neighbour{Port: n.Port, Name: n.Name, Up: n.State == "up", Queued: n.Queued, Dropped: n.Drops})
	}
	if s.Repairs != nil {
		out.Repairs = s.Repairs.Count
	}
	if r := s.Routes; r != nil {
		out.Routes, out.RouteErrors, out.RouteTook = r.Changed, r.Errors, time.Duration(r.LastMS*float64(time.Millisecond))
	}
	w.Switch(out)
	w.Updates(metrics.Updates{Received: s.Received, Rejected: s.Rejected, Heard: -1, Switches: len(s.Database)})
	for _, p := range s.Meters {
		w.Port(metrics.Port{Name: p.Port, Packets: p.Packets, Bytes: p.Bytes, Marks: p.Marks, Overflow: p.Overflow, Drops: p.Drops, Queue: p.Length, Load: p.Load})
	}
	if b := s.Balance; b != nil {
		w.Balanced(metrics.Outcomes{"chosen": b.Chosen, "plain": b.Plain})
	}
	if c := s.Decap; c != nil {
		w.Decap("decap", metrics.Outcomes{"decapsulated": c.Decapsulated, "spoofed": c.Spoofed, "nested": c.Nested, "ecn": c.ECN, "malformed": c.Malformed})
	}
	if c := s.Edge; c != nil {
		w.Decap("edge", metrics.Outcomes{"decapsulated": c.Decapsulated, "forged": c.Forged, "nested": c.Nested, "ecn": c.ECN, "malformed": c.Malformed})
	}
	if c := s.Labels; c != nil {
		w.Decap("labels", metrics.Outcomes{"popped": c.Popped, "decapsulated": c.Decapsulated, "ended": c.Ended, "malformed": c.Malformed, "unknown": c.Unknown, "expired": c.Expired})
	}
	if f := s.Feedback; f != nil {
		w.Told(metrics.Outcomes{"told": f.Told, "bounded": f.Bounded, "foreign": f.Foreign, "failed": f.Failed, "malformed": f.Malformed})
	}
}
