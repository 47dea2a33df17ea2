package dataplane

import "weft/internal/clock"

// Clock returns the clock that an egress lives by.
func (e *Egress) Clock() clock.Clock { return e.clock }

// Seed returns the seed of everything random of a host.
func (e *Egress) Seed() uint64 { return e.seed }

// MTU returns the MTU of the packets that Send takes, in bytes.
func (e *Egress) MTU() int { return e.config.MTU() }

// TakesSupers reports whether Send takes super-segments at the moment.
func (e *Egress) TakesSupers() bool {
	return e.outlet.supers()
}

// Refuse sets a function that gets ICMP errors about packets that are too long, and owns
// them. It is called with the lock held.
func (e *Egress) Refuse(refuse func(packet []byte)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse = refuse
}

// Remember makes an egress record which path has lost which segments. probes says that
// TCP sends tail loss probes (RFC 8985 §7).
func (e *Egress) Remember(probes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evidence = newEvidence(e.seed, probes)
	e.evidence.heeding = e.heeding
}

// OnLoss sets a function that is called, with the lock held, when there are losses that
// Report has not reported.
func (e *Egress) OnLoss(suspect func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspect = suspect
}
