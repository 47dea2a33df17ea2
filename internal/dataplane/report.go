package dataplane

import "time"

// report tells o what was sent and lost since the last time, destination by
// destination, and begins to count anew.
func (v *evidence) report(o Observer, now time.Duration) {
	for i, p := range v.tallied {
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
		p.tally, v.tallied[i] = nil, nil
	}
	v.tallied = v.tallied[:0]
	for _, l := range v.losses {
		o.Lost(l.host, int(l.path), 1, now)
	}
	v.losses = v.losses[:0]
}

// Report reports to o what was seen since the last call. o must not call the Egress.
func (e *Egress) Report(o Observer, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evidence != nil {
		e.evidence.report(o, now)
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
