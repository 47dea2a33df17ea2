package metrics

import "time"

var (
	switchInfo       = gauge("weft_switch_info", "1; the label is the switch's name in the fabric.", "switch")
	neighbourUp      = gauge("weft_switch_neighbour_up", "1 if the link to a neighbour is reported up.", "port", "neighbour")
	neighbourQueued  = gauge("weft_switch_neighbour_queued_entries", "Link-state entries that wait to be sent to a neighbour.", "port")
	neighbourDropped = counter("weft_switch_neighbour_dropped_messages_total", "Messages of a neighbour that the kernel has dropped.", "port")
	hellosSent       = counter("weft_switch_hellos_sent_total", "Hellos sent.")
	updatesSent      = counter("weft_switch_updates_sent_total", "Link-state messages sent.")
	routesChanged    = counter("weft_switch_routes_changed_total", "Routes changed.")
	routeErrors      = counter("weft_switch_route_errors_total", "Routes that could not be changed.")
	routeTook        = gauge("weft_switch_route_update_seconds", "How long the latest update of the routes took.")

	portPackets  = counter("weft_switch_port_packets_total", "Packets sent by a metered port.", "port")
	portBytes    = counter("weft_switch_port_bytes_total", "Bytes of Ethernet frames, without checksum, sent by a metered port.", "port")
	portMarks    = counter("weft_switch_port_marked_packets_total", "Packets that a metered port has set CE on.", "port")
	portOverflow = counter("weft_switch_port_overflow_packets_total", "Packets that the port's virtual queue had no room for.", "port")
	portDrops    = counter("weft_switch_port_dropped_packets_total", "Packets that a metered port's real queue has dropped.", "port")
	portQueue    = gauge("weft_switch_port_queue_bytes", "Bytes in the port's virtual queue now.", "port")
	portLoad     = gauge("weft_switch_port_load_ratio", "Load of a metered port over the latest tau, as a share of its rate.", "port")

	balanced = counter("weft_switch_balanced_packets_total", "Packets, by how the balance program led them: chosen (by the rule), plain (by the kernel's routes).", "as")
	decap    = counter("weft_switch_decap_packets_total", "Packets that came with an outer header or labels, by where (decap, edge, labels) and outcome.", "part", "outcome")
	qcnTold  = counter("weft_switch_qcn_messages_total", "Congestion messages to senders, by what became of them.", "result")
	unread   = gauge("weft_switch_counters_unreadable", "1 if some of the switch's counters cannot be read, or what they belong to does not run.")
)

// Switch is what an agent says about itself.
type Switch struct {
	Name                     string
	Neighbours               []Neighbour
	LinksDown                int
	Changes, Hellos, Updates uint64
	Repairs                  uint64
	Routes, RouteErrors      uint64
	RouteTook                time.Duration
	Unreadable               bool
}

// Neighbour is one port's.
type Neighbour struct {
	Port, Name string
	Up         bool
	Queued     int
	Dropped    uint64
}

// Switch writes it.
func (w Writer) Switch(s Switch) {
	w.put(switchInfo, 1, s.Name)
	for _, n := range s.Neighbours {
		w.truth(neighbourUp, n.Up, n.Port, n.Name)
		w.put(neighbourQueued, float64(n.Queued), n.Port)
		w.count(neighbourDropped, n.Dropped, n.Port)
	}
	w.put(linksDown, float64(s.LinksDown))
	w.count(changes, s.Changes)
	w.count(hellosSent, s.Hellos)
	w.count(updatesSent, s.Updates)
	w.count(repairs, s.Repairs)
	w.count(routesChanged, s.Routes)
	w.count(routeErrors, s.RouteErrors)
	w.seconds(routeTook, s.RouteTook)
	w.truth(unread, s.Unreadable)
}

// Port is what the meter of a port has measured.
type Port struct {
	Name                                   string
	Packets, Bytes, Marks, Overflow, Drops uint64
	Queue                                  uint64  // bytes
	Load                                   float64 // share of the rate
}

// Port writes it.
func (w Writer) Port(p Port) {
	w.count(portPackets, p.Packets, p.Name)
	w.count(portBytes, p.Bytes, p.Name)
	w.count(portMarks, p.Marks, p.Name)
	w.count(portOverflow, p.Overflow, p.Name)
	w.count(portDrops, p.Drops, p.Name)
	w.put(portQueue, float64(p.Queue), p.Name)
	w.put(portLoad, p.Load, p.Name)
}

// Balanced writes how packets were led.
func (w Writer) Balanced(packets Outcomes) { w.outcomes(balanced, packets) }

// Decap writes what became of packets with outer headers at a part of a switch.
func (w Writer) Decap(part string, packets Outcomes) {
	for outcome, n := range packets {
		w.count(decap, n, part, outcome)
	}
}

// Told writes what became of messages to senders.
func (w Writer) Told(messages Outcomes) { w.outcomes(qcnTold, messages) }
