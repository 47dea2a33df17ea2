package elephant

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// MaxPins bounds the flows that are pinned at one time; MAX_PINS of elephant.h.
const MaxPins = 1 << 14

// MaxValid bounds how long a pin is obeyed without being renewed.
const MaxValid = time.Minute

// Pin is a path for a flow.
type Pin struct {
	Flow  Flow
	Path  int           // its number in the PathSet of source and destination
	Via   netip.Addr    // the switch at the top of the path: a core, a bouncing switch
	Until time.Duration // when it expires
}

// PinStats counts.
type PinStats struct {
	Set, Expired, Refused uint64 // Refused: for lack of room, or no good
}

// Pins is what is pinned. It is not safe for concurrent use. The zero value is empty.
type Pins struct {
	of    map[Flow]Pin
	stats PinStats
}

// Set pins a flow for valid from now, in place of what it was pinned to. An error says why that
// is not possible; then what was before stays.
func (p *Pins) Set(now time.Duration, f Flow, path int, via netip.Addr, valid time.Duration) error {
	if err := p.check(now, f, path, via, valid); err != nil {
		p.stats.Refused++
		return err
	}
	if p.of == nil {
		p.of = make(map[Flow]Pin)
	}
	p.of[f] = Pin{f, path, via, now + valid}
	p.stats.Set++
	return nil
}

func (p *Pins) check(now time.Duration, f Flow, path int, via netip.Addr, valid time.Duration) error {
	if err := f.Check(); err != nil {
		return err
	}
	switch _, had := p.of[f]; {
	case !via.IsValid() || path < 0:
		return fmt.Errorf("flow %v: no path", f)
	case valid <= 0 || valid > MaxValid:
		return fmt.Errorf("flow %v: valid for %v, must be more than 0 and at most %v", f, valid, MaxValid)
	case had || len(p.of) < MaxPins:
		return nil
	}
	if p.Expire(now); len(p.of) == MaxPins {
		return fmt.Errorf("flow %v: %d flows are pinned, which is all that there is room for", f, MaxPins)
	}
	return nil
}

// Holds reports whether a flow has a pin that has not expired.
func (p *Pins) Holds(now time.Duration, f Flow) bool {
	pin, ok := p.of[f]
	return ok && pin.Until > now
}

// Drop forgets a flow's pin.
func (p *Pins) Drop(f Flow) { delete(p.of, f) }

// Expire forgets what has expired, and reports whether there was any.
func (p *Pins) Expire(now time.Duration) bool {
	n := len(p.of)
	for f, pin := range p.of {
		if pin.Until <= now {
			delete(p.of, f)
		}
	}
	p.stats.Expired += uint64(n - len(p.of))
	return n > len(p.of)
}

// Len is how many there are, those included that Expire has not seen.
func (p *Pins) Len() int { return len(p.of) }

// List returns all, by flow.
func (p *Pins) List() []Pin {
	list := make([]Pin, 0, len(p.of))
	for _, pin := range p.of {
		list = append(list, pin)
	}
	slices.SortFunc(list, func(a, b Pin) int { return compareFlows(a.Flow, b.Flow) })
	return list
}

// Stats returns what has been counted.
func (p *Pins) Stats() PinStats { return p.stats }

// ProgramStats is what a program has done since it was attached.
type ProgramStats struct {
	Counted  uint64 `json:"counted"`  // flows that began to be counted
	Pinned   uint64 `json:"pinned"`   // packets, super-segments included, that went by their flow's pin
	Unpinned uint64 `json:"unpinned"` // packets of a pin that has expired, or whose path is not live: by the rule
}
