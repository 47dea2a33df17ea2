package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	plane "weft/internal/dataplane"
	"weft/internal/hostprog"
	"weft/internal/metrics"
	"weft/internal/pacing"
	"weft/topoupdate/listen"
)

// collector returns what exports the daemon's status. A scrape costs what a status costs, and
// shares with it what is known of paths (pathViews).
func (d *daemon) collector() prometheus.Collector {
	return metrics.Collector(func(w metrics.Writer) {
		s, h := d.observe()
		s.write(w)
		h.write(w, s.Uplinks)
	})
}

func (h health) write(w metrics.Writer, uplinks []UplinkStatus) {
	if len(h.probes) == 0 {
		return
	}
	w.Probes(h.probes...)
	w.Carriage(h.carriage...)
	w.Paths(h.paths, func(from int) string {
		if from < len(uplinks) {
			return uplinks[from].Device
		}
		return ""
	})
}

// write exports a status, but for what is known of paths.
func (s *Status) write(w metrics.Writer) {
	h := metrics.Host{
		Mode: s.Mode, Policy: s.Policy, Unit: s.Unit, Encapsulation: s.Encapsulation,
		Working: s.State == StateWorking, Trouble: s.Trouble != "",
		Repairs: s.Repairs, Reloads: s.Reloads, Foreign: len(s.Others), Drops: make(map[string]uint64),
	}
	for _, u := range s.Uplinks {
		h.Uplinks = append(h.Uplinks, metrics.Uplink{Device: u.Device, Switch: u.Switch, Up: u.Up})
	}
	for name, d := range s.Devices {
		h.Drops[name] = d.Drops
	}
	if f := s.Failures; f != nil {
		h.LinksDown, h.Changes = len(f.Down), f.Changes
		if u, ok := f.Updates.(listen.Status); ok {
			w.Updates(metrics.Updates{Received: u.Received, Rejected: u.Rejected, Heard: u.Heard, Switches: u.Switches, Held: u.Held})
		}
		if f.Probes != nil { // else nobody knows of losses
			all := make([]metrics.Blamed, len(f.Blamed))
			for i, b := range f.Blamed {
				all[i] = metrics.Blamed{Places: b.Places, Kinds: b.Kinds, Family: b.Family, Loss: b.Loss}
			}
			w.Blame(all)
		}
	}
	if s.LateCut != nil {
		w.LateCut(s.LateCut.Active)
	}
	w.Host(h)
	var sent []metrics.Sent
	if p, ok := s.Offload.(hostprog.SprayStats); ok {
		w.Spray(metrics.Outcomes{"encapsulated": p.Encapsulated, "passed": p.Passed, "plain": p.Plain, "unattended": p.Unattended, "refused": p.Refused,
			"no_path": p.NoPath, "too_long": p.TooLong, "malformed": p.Malformed, "broken": p.Broken}, p.Flows, p.Flowcells)
		for _, b := range p.Bounces {
			sent = append(sent, metrics.Sent{Via: b.Addr, Uplink: b.Uplink, Packets: b.Packets, Bytes: b.Bytes})
		}
	}
	switch o := s.Order.(type) {
	case hostprog.OrderStats:
		w.Order(metrics.Outcomes{"seen": o.Seen, "straight": o.Straight, "diverted": o.Diverted, "crowded": o.Crowded, "passed_dead": o.PassedDead, "missed": o.Missed, "long": o.Long,
			"strays": o.Strays, "over_budget": o.OverBudget, "shed": o.Shed})
	case nil:
		if t, ok := s.Steer.(hostprog.SteerStats); ok {
			w.Order(metrics.Outcomes{"seen": t.Seen, "diverted": t.Taken, "passed_dead": t.PassedDead})
		}
	}
	if m, ok := s.Mesh.(*MeshStatus); ok {
		w.Mesh(metrics.Mesh{Peers: m.Peers, Lingering: m.Lingering, Refused: m.Refused, Renewed: m.Renewed, Registered: m.Registered, Following: m.Following})
	}
	if q, ok := s.QCN.(pacing.Stats); ok {
		w.QCN(metrics.Outcomes{"believed": q.Believed, "answered": q.Answered, "stale": q.Stale, "unknown": q.Unknown, "overflow": q.Overflow,
			"malformed": q.Malformed, "foreign": q.Foreign, "dropped": q.Dropped}, q.Limited)
	}
	if g, ok := s.Dataplane.(plane.GatewayStats); ok {
		w.Egress(g.Egress, g.Egress6)
		w.Ingress(g.Ingress)
		w.Tunnel(g.Tunnel)
		w.Resequencer("tcp", g.Resequencer)
		w.Resequencer("datagrams", g.Datagrams)
		w.Evidence(g.Evidence, g.Evidence6)
		for _, p := range g.Paths {
			sent = append(sent, metrics.Sent{Via: p.Bounce, Packets: p.Packets, Bytes: p.Bytes})
		}
	}
	w.Sent(sent)
}
