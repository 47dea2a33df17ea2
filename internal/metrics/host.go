package metrics

var (
	tcpSegments    = counter("weft_tcp_segments_total", "Segments of weft's own TCP, by direction.", "direction")
	tcpRetransmits = counter("weft_tcp_retransmits_total", "Segments that weft's own TCP has sent again.")
	tcpTimeouts    = counter("weft_tcp_timeouts_total", "Retransmission timeouts of weft's own TCP.")
	tcpRecoveries  = counter("weft_tcp_fast_recoveries_total", "Times that weft's own TCP entered fast recovery.")

	hostInfo    = gauge("weft_host_info", "1; the labels say how the daemon runs.", "mode", "policy", "unit", "encapsulation")
	working     = gauge("weft_host_working", "1 if all is in place, 0 if weft is out of the way and packets go as the kernel's own routes have them.")
	troubled    = gauge("weft_host_trouble", "1 if weft status says that something is wrong.")
	repairs     = counter("weft_repairs_total", "Changes of others that weft has undone.")
	reloads     = counter("weft_reloads_total", "Configurations taken over while the daemon ran.")
	foreign     = gauge("weft_foreign_programs", "Programs and filters of other owners where weft's programs are.")
	uplinkUp    = gauge("weft_uplink_up", "1 if an uplink has a carrier and its paths are in use.", "uplink", "switch")
	linksDown   = gauge("weft_links_down", "Links of the fabric that are known to be down.")
	changes     = counter("weft_topology_changes_total", "Changes of the topology that packets go by.")
	deviceDrops = counter("weft_device_dropped_packets_total", "Packets that a device of weft's has lost.", "device")

	sprayPackets   = counter("weft_spray_packets_total", "Packets for which the spray program ran, by outcome.", "outcome")
	sprayFlows     = counter("weft_spray_flows_total", "Flows that the spray program has begun to cut.")
	sprayFlowcells = counter("weft_spray_flowcells_total", "Flowcells and flowlets that the spray program has begun.")
	orderPackets   = counter("weft_order_packets_total", "Incoming packets, by what the order or steer program did with them.", "outcome")
	qcnMessages    = counter("weft_qcn_messages_total", "Congestion messages of switches, by what became of them.", "result")
	qcnLimited     = gauge("weft_qcn_limited_connections", "Connections that are slowed now.")

	updates         = counter("weft_updates_received_total", "Link-state messages received, rejected ones included.")
	updatesRejected = counter("weft_updates_rejected_total", "Link-state messages rejected, by reason.", "reason")
	updatesHeard    = gauge("weft_updates_heard_seconds", "Seconds since the last link-state message.")
	updatesSwitches = gauge("weft_updates_switches", "Switches whose state is known from link-state messages.")
	updatesHeld     = gauge("weft_updates_held_links", "Links that unsigned messages report down and the floor keeps in use.")
)

// TCP writes netstack's counters.
func (w Writer) TCP(sent, received, retransmits, timeouts, recoveries uint64) {
	w.causes(tcpSegments, cause{"sent", sent}, cause{"received", received})
	w.count(tcpRetransmits, retransmits)
	w.count(tcpTimeouts, timeouts)
	w.count(tcpRecoveries, recoveries)
}

// Host is what a daemon says about itself.
type Host struct {
	Mode, Policy, Unit, Encapsulation string
	Working, Trouble                  bool
	Repairs, Changes                  uint64
	Reloads, Foreign, LinksDown       int
	Uplinks                           []Uplink
	Drops                             map[string]uint64 // by device
}

// Uplink is one of a host's.
type Uplink struct {
	Device, Switch string
	Up             bool
}

// Host writes it.
func (w Writer) Host(h Host) {
	w.put(hostInfo, 1, h.Mode, h.Policy, h.Unit, h.Encapsulation)
	w.truth(working, h.Working)
	w.truth(troubled, h.Trouble)
	w.count(repairs, h.Repairs)
	w.put(reloads, float64(h.Reloads))
	w.put(foreign, float64(h.Foreign))
	for _, u := range h.Uplinks {
		w.truth(uplinkUp, u.Up, u.Device, u.Switch)
	}
	w.put(linksDown, float64(h.LinksDown))
	w.count(changes, h.Changes)
	for d, n := range h.Drops {
		w.count(deviceDrops, n, d)
	}
}

// Outcomes are counters by what became of packets or messages.
type Outcomes map[string]uint64

func (w Writer) outcomes(f *family, all Outcomes) {
	for name, n := range all {
		w.count(f, n, name)
	}
}

// Spray writes the counters of the program at the uplink.
func (w Writer) Spray(packets Outcomes, flows, flowcells uint64) {
	w.outcomes(sprayPackets, packets)
	w.count(sprayFlows, flows)
	w.count(sprayFlowcells, flowcells)
}

// Order writes the counters of the program that takes what comes in.
func (w Writer) Order(packets Outcomes) { w.outcomes(orderPackets, packets) }

// QCN writes what became of congestion messages.
func (w Writer) QCN(messages Outcomes, limited int) {
	w.outcomes(qcnMessages, messages)
	w.put(qcnLimited, float64(limited))
}

// Updates is what a listener to link-state messages says.
type Updates struct {
	Received       uint64
	Rejected       map[string]uint64
	Heard          float64 // seconds; below 0: never
	Switches, Held int
}

// Updates writes it.
func (w Writer) Updates(u Updates) {
	w.count(updates, u.Received)
	w.outcomes(updatesRejected, u.Rejected)
	if u.Heard >= 0 {
		w.put(updatesHeard, u.Heard)
	}
	w.put(updatesSwitches, float64(u.Switches))
	w.put(updatesHeld, float64(u.Held))
}
