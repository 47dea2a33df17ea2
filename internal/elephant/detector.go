package elephant

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Duty is what a program does with flows; the enum of elephant.h.
type Duty uint8

// The duties.
const (
	Nothing Duty = iota
	PinFlows
	PinAndCount
)

// Defaults and bounds.
const (
	DefaultShare = 0.1  // of the host's link (thesis §4.1.1)
	DefaultMax   = 1024 // flows in a report
	MaxCounted   = 1 << 16
)

// Config says what an elephant is.
type Config struct {
	Share float64                       // of the link that a flow must exceed; 0: DefaultShare
	Max   int                           // the most flows that a reading returns; 0: DefaultMax
	Link  func(host netip.Addr) float64 // bit/s of a source's link; 0: it is no host of this link, and its flows are not looked at
}

// Check says what is wrong.
func (c Config) Check() error {
	switch {
	case !(c.Share >= 0 && c.Share < 1): // and not NaN
		return fmt.Errorf("Share is %v, must be from 0 to less than 1", c.Share)
	case c.Max < 0 || c.Max > MaxCounted:
		return fmt.Errorf("Max is %d, must be from 0 to %d", c.Max, MaxCounted)
	case c.Link == nil:
		return fmt.Errorf("Link is missing; give the rates of the hosts' links")
	}
	return nil
}

// Count is a flow's entry: what it has sent since the program began to count it.
type Count struct {
	Key   Key
	Bytes uint64
}

// Rate is a flow and what it sends, in bit/s on the wire.
type Rate struct {
	Flow Flow
	Bits float64
}

// Detector finds elephants. It is not safe for concurrent use.
type Detector struct {
	cfg        Config
	was, spare map[Key]uint64
	at         time.Duration
	begun      bool
	stats      Stats
}

// Stats counts readings and what was in the latest.
type Stats struct {
	Readings  uint64 // that rates were made of
	Flows     int    // counted
	Foreign   int    // of these, those that sent, and whose source Config.Link does not know
	Elephants int    // of these
	LeftOut   int    // of these, those above Config.Max
}

// NewDetector returns one that has read nothing.
func NewDetector(c Config) (*Detector, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("elephants: %w", err)
	}
	c.Share, c.Max = cmp.Or(c.Share, DefaultShare), cmp.Or(c.Max, DefaultMax)
	return &Detector{cfg: c, was: make(map[Key]uint64), spare: make(map[Key]uint64)}, nil
}

// Read takes a reading of the program's counts and returns the elephants since the reading
// before, the largest first. The first returns none: nobody knows since when the counts are.
//
// A flow that was not in the reading before has begun since then, or was forgotten and counted
// anew. So its whole count is of this time, and may be too low, never too high. The same
// holds for a count that is lower than before.
func (d *Detector) Read(now time.Duration, counts []Count) (elephants []Rate) {
	took := now - d.at
	first := !d.begun
	if !first && took <= 0 {
		return nil
	}
	clear(d.spare)
	d.stats.Foreign = 0
	for _, c := range counts {
		if _, twice := d.spare[c.Key]; twice {
			continue
		}
		before := d.was[c.Key]
		d.spare[c.Key] = c.Bytes
		if first {
			continue
		}
		sent := c.Bytes
		if before <= sent {
			sent -= before
		}
		if sent == 0 {
			continue
		}
		f := c.Key.Flow()
		link, bits := d.cfg.Link(f.Src.Addr()), float64(sent)*8/took.Seconds()
		switch {
		case !(link > 0):
			d.stats.Foreign++
		case bits > d.cfg.Share*link:
			elephants = append(elephants, Rate{f, min(bits, link)}) // more than the link's: the reading was late
		}
	}
	d.was, d.spare, d.at, d.begun = d.spare, d.was, now, true
	d.stats.Flows, d.stats.Elephants, d.stats.LeftOut = len(counts), len(elephants), max(0, len(elephants)-d.cfg.Max)
	if !first {
		d.stats.Readings++
	}
	slices.SortFunc(elephants, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.Bits, a.Bits), compareFlows(a.Flow, b.Flow))
	})
	return elephants[:min(len(elephants), d.cfg.Max)]
}

// Stats returns what the readings were.
func (d *Detector) Stats() Stats { return d.stats }

func compareFlows(a, b Flow) int {
	return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst), cmp.Compare(a.Protocol, b.Protocol))
}
