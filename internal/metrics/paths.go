package metrics

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"weft/internal/histogram"
	"weft/liveness"
)

var (
	pathRTT     = declare(0, "weft_path_rtt_seconds", "Round trips of probes to a bouncing switch and back, by bouncing switch and uplink.", "via", "uplink")
	pathSRTT    = gauge("weft_path_smoothed_rtt_seconds", "Smoothed round trip of probes to a bouncing switch and back.", "via", "uplink")
	pathLoss    = gauge("weft_path_loss_ratio", "Share of the latest probes to a bouncing switch, up to 64, that did not come home.", "via", "uplink")
	pathUsable  = gauge("weft_path_usable", "1 if packets may take the way up to a bouncing switch, 0 if it is quarantined, slow, down or mute.", "via", "uplink")
	pathMissed  = counter("weft_path_probes_missed_total", "Probes to a bouncing switch that did not come home in time.", "via", "uplink")
	pathLost    = counter("weft_path_retransmits_total", "Packets sent again after they had taken a path by a bouncing switch, as far as that is known.", "via", "uplink")
	pathPackets = counter("weft_path_sent_packets_total", "Packets sent by a bouncing switch.", "via", "uplink")
	pathBytes   = counter("weft_path_sent_bytes_total", "Bytes of IP packets with outer headers sent by a bouncing switch.", "via", "uplink")
	paths       = gauge("weft_paths", "Ways up to bouncing switches, by state.", "state")
	rackPaths   = gauge("weft_rack_paths", "Paths to hosts in use of a rack, by state: of the racks with most paths that are not up, and of all others as one.", "rack", "state")
	racksPlain  = gauge("weft_racks_plain", "Racks whose packets go plain, because no carrier is proved.")
	racks       = gauge("weft_racks", "Racks to which packets may be carried, this host's own left out.")
)

var states = []liveness.Health{liveness.Up, liveness.Suspicious, liveness.Quarantined, liveness.Slow, liveness.Down, liveness.Mute}

// Sent is what was sent by one bouncing switch.
type Sent struct {
	Via            netip.Addr
	Uplink         string
	Packets, Bytes uint64
}

// way is what has series of its own.
type way struct{ via, uplink string }

func (a way) compare(b way) int {
	return cmp.Or(cmp.Compare(a.via, b.via), cmp.Compare(a.uplink, b.uplink))
}

// up is a way up: the best of the boomerangs that share it, as one may be up and another,
// to another rack of the same switch, not.
type up struct {
	tally  liveness.Tally
	rtt    time.Duration // 0: not known
	loss   float64
	probed bool
	usable bool
}

// Paths writes what is known of paths: the boomerangs by bouncing switch, all others by rack.
// uplink names a PathHealth's, "" if there is one.
func (w Writer) Paths(all []liveness.PathHealth, uplink func(from int) string) {
	if len(all) == 0 {
		return
	}
	ups, byState := make(map[way]*up), make(map[liveness.Health]int)
	byRack := make(map[string]map[liveness.Health]int)
	for i := range all {
		p := &all[i]
		if p.Tally == nil {
			if byRack[p.Rack] == nil {
				byRack[p.Rack] = make(map[liveness.Health]int)
			}
			byRack[p.Rack][p.State]++
			continue
		}
		byState[p.State]++
		k := way{p.Via.String(), uplink(p.From)}
		if ups[k] == nil {
			ups[k] = new(up)
		}
		ups[k].add(p)
	}
	for _, s := range states {
		w.put(paths, float64(byState[s]), string(s))
	}
	w.ups(ups)
	w.racks(byRack)
}

func (u *up) add(p *liveness.PathHealth) {
	u.tally.RTT.Add(&p.Tally.RTT)
	u.tally.Missed += p.Tally.Missed
	u.tally.Lost += p.Tally.Lost
	if p.RTT > 0 && (u.rtt == 0 || p.RTT < u.rtt) {
		u.rtt = p.RTT
	}
	if p.RTT > 0 || p.Loss > 0 { // else it was not probed yet
		if !u.probed || p.Loss < u.loss {
			u.loss = p.Loss
		}
		u.probed = true
	}
	u.usable = u.usable || p.State == liveness.Up || p.State == liveness.Suspicious
}

// ups writes the ways up. Of those above MaxPaths only what can be added is told.
func (w Writer) ups(ups map[way]*up) {
	var rest liveness.Tally
	var rtts histogram.Histogram
	for i, k := range slices.SortedFunc(maps.Keys(ups), way.compare) {
		u := ups[k]
		if i >= MaxPaths {
			rtts.Add(&u.tally.RTT)
			rest.Missed, rest.Lost = rest.Missed+u.tally.Missed, rest.Lost+u.tally.Lost
			continue
		}
		w.histogram(pathRTT, &u.tally.RTT, k.via, k.uplink)
		w.count(pathMissed, u.tally.Missed, k.via, k.uplink)
		w.count(pathLost, u.tally.Lost, k.via, k.uplink)
		w.truth(pathUsable, u.usable, k.via, k.uplink)
		w.put(pathLoss, u.loss, k.via, k.uplink)
		if u.rtt > 0 {
			w.seconds(pathSRTT, u.rtt, k.via, k.uplink)
		}
	}
	if len(ups) > MaxPaths {
		w.histogram(pathRTT, &rtts, OtherLabel, "")
		w.count(pathMissed, rest.Missed, OtherLabel, "")
		w.count(pathLost, rest.Lost, OtherLabel, "")
	}
}

// racks writes the racks with most paths that are not up, and the rest as one.
func (w Writer) racks(by map[string]map[liveness.Health]int) {
	bad := func(rack string) (n int) {
		for s, m := range by[rack] {
			if s != liveness.Up {
				n += m
			}
		}
		return n
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(bad(b), bad(a)), cmp.Compare(a, b))
	})
	rest := make(map[liveness.Health]int)
	for i, r := range names {
		for _, s := range states {
			if i >= MaxRacks {
				rest[s] += by[r][s]
			} else {
				w.put(rackPaths, float64(by[r][s]), r, string(s))
			}
		}
	}
	if len(names) > MaxRacks {
		for _, s := range states {
			w.put(rackPaths, float64(rest[s]), OtherLabel, string(s))
		}
	}
}

// Carriage writes to how many racks packets go plain. nil means that none are watched.
func (w Writer) Carriage(all ...*liveness.Carriage) {
	n, plain, known := 0, 0, false
	for _, c := range all {
		if c == nil {
			continue
		}
		known = true
		for _, r := range c.Racks() {
			if n++; c.Plain(r) {
				plain++
			}
		}
	}
	if known {
		w.put(racks, float64(n))
		w.put(racksPlain, float64(plain))
	}
}

// Sent writes what was sent by each bouncing switch. Two of the same way are added.
func (w Writer) Sent(all []Sent) {
	sum := make(map[way]*Sent)
	for _, s := range all {
		k := way{OtherLabel, s.Uplink}
		if s.Via.IsValid() {
			k.via = s.Via.String()
		}
		if sum[k] == nil {
			sum[k] = new(Sent)
		}
		sum[k].Packets, sum[k].Bytes = sum[k].Packets+s.Packets, sum[k].Bytes+s.Bytes
	}
	var rest Sent
	for i, k := range slices.SortedFunc(maps.Keys(sum), way.compare) {
		if s := sum[k]; i < MaxPaths && k.via != OtherLabel {
			w.count(pathPackets, s.Packets, k.via, k.uplink)
			w.count(pathBytes, s.Bytes, k.via, k.uplink)
		} else {
			rest.Packets, rest.Bytes = rest.Packets+s.Packets, rest.Bytes+s.Bytes
		}
	}
	if rest.Packets > 0 {
		w.count(pathPackets, rest.Packets, OtherLabel, "")
		w.count(pathBytes, rest.Bytes, OtherLabel, "")
	}
}
