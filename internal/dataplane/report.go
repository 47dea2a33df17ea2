package dataplane

import (
	"net/netip"
	"time"
)

// report tells o what was sent and lost since the last time, destination by
// destination, and begins to count anew. It leaves the hosts that are not o's to another.
func (v *evidence) report(o Observer, now time.Duration, own func(host netip.Addr) bool) {
	kept := v.tallied[:0]
	for _, p := range v.tallied {
		if !own(p.host) {
			kept = append(kept, p)
			continue
		}
		o.Active(p.host, p.dst.IP(), now)
		for path, n := range p.tally {
			if n > 0 {
				o.Sent(p.host, path, int(n))
			}
		}
		clear(p.tally)
		if len(v.tallies) < MaxTallied {
			v.tallies = append(v.tallies, p.tally)
		}
		p.tally = nil
	}
	clear(v.tallied[len(kept):])
	v.tallied = kept
	losses := v.losses[:0]
	for _, l := range v.losses {
		if own(l.host) {
			o.Lost(l.host, int(l.path), 1, now)
		} else {
			losses = append(losses, l)
		}
	}
	v.losses = losses
}

// Report reports to o what was seen since the last call, but for what Six.Report reports. o
// must not call the Egress.
func (e *Egress) Report(o Observer, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evidence != nil {
		e.evidence.report(o, now, func(host netip.Addr) bool { return e.paths.six == nil || host.Is4() })
	}
}

// Report is Egress.Report of IPv6 packets.
func (s Six) Report(o Observer, now time.Duration) {
	e := s.egress
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evidence != nil {
		e.evidence.report(o, now, netip.Addr.Is6)
	}
}

// reportLosses asks for a Report if there are losses. It is called with the lock
// held.
func (e *Egress) reportLosses() {
	if e.suspect != nil && len(e.evidence.losses) > 0 {
		e.suspect()
	}
}

// EvidenceStats returns the counters of evidence.
func (e *Egress) EvidenceStats() (s EvidenceStats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evidence != nil {
		s = e.evidence.stats
	}
	return s
}
