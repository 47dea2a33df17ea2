package overview

// Way is a way up of a host: a bouncing switch, by one of several uplinks, or a path of a tunnel.
type Way struct {
	Bounce  string // its name, or its address where that is not known
	Uplink  string // where the host has several
	State   string // as probes say; "": none are sent
	Why     string
	Packets uint64 // sent since the daemon began
	Bytes   uint64
	RTT50   float64 // ms; 0: not known
	RTT99   float64
	Loss    float64 // part of what was sent in the last 10 to 20 s
}

// Ways returns the ways up of a host in the order of their addresses, with what was sent by them.
func (h *Host) Ways() (all []Way) {
	for _, w := range h.ways() {
		out := Way{Uplink: w.uplink, Packets: w.packets, Bytes: w.bytes, RTT50: w.p50(), RTT99: w.p99()}
		plain := w
		plain.uplink = ""
		out.Bounce = plain.name()
		if w.probed != nil {
			out.State, out.Why, out.Loss = w.probed.State, w.probed.Why, w.probed.loss()
		}
		all = append(all, out)
	}
	return all
}
