package hostprog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weft/internal/elephant"
	"weft/internal/kernel"
)

// PathPin pins a flow to a path.
type PathPin struct {
	Flow  elephant.Flow
	Path  int    // its number in the PathSet to the destination
	Until uint64 // ns of the kernel's monotonic clock
}

var errNoElephants = errors.New("spray: attached without SprayConfig.Elephants, so no flow is counted or pinned")

// FlowCounts reads what has been counted, with SprayConfig.Elephants PinAndCount. It may use the
// slice.
func (o *Spray) FlowCounts(counts []elephant.Count) (now []elephant.Count, err error) {
	if o.duty != elephant.PinAndCount {
		return nil, errNoElephants
	}
	err = o.use(func() (err error) {
		now, err = kernel.FlowCounts(o.counted, counts)
		return err
	})
	return now, err
}

// SetPins makes the pinned flows these, at most elephant.MaxPins. A pin has no effect while its
// path is not live: SetTopology and SetPlain look again. It keeps the slice.
func (o *Spray) SetPins(pins []PathPin) error {
	if o.duty == elephant.Nothing {
		return errNoElephants
	}
	for _, p := range pins {
		if err := p.Flow.Check(); err != nil {
			return fmt.Errorf("spray: SetPins: %w", err)
		}
	}
	return o.use(func() error {
		o.pins = pins[:min(len(pins), elephant.MaxPins)]
		return o.putPins()
	})
}

// putPins writes the pins as the groups are at present. Of a pin to another group the program
// takes no notice, and a group's paths never change.
func (o *Spray) putPins() error {
	if o.duty == elephant.Nothing {
		return nil
	}
	want := make(map[elephant.Key]kernel.PinValue)
	for _, p := range o.pins {
		for _, w := range o.families() {
			if dst := p.Flow.Dst.Addr(); w.six() != dst.Is6() {
				continue
			} else if g, word, ok := w.pathTo(dst, p.Path); ok {
				want[p.Flow.Key()] = kernel.PinValue{Until: p.Until, Way: binary.NativeEndian.Uint32(word[:]), Among: g.number}
			}
		}
	}
	if _, err := o.obeyed.Set(want); err != nil {
		return fmt.Errorf("pins: %w", kernel.Explain(err))
	}
	return nil
}

// pathTo returns the group by which a host is reached, and the word of one of its live paths.
func (w *ways) pathTo(host netip.Addr, path int) (g *sprayGroup, word pathWord, ok bool) {
	rack, ok := w.rackOf(host)
	if !ok {
		return nil, word, false
	}
	if g = w.by[netip.PrefixFrom(host, host.BitLen())]; g == nil {
		g = w.by[rack.prefix]
	}
	if g == nil || !slices.Contains(g.visits, path) {
		return nil, word, false
	}
	return g, rack.words.words[path], true
}

// Elephants returns what the program has counted of elephants.
func (o *Spray) Elephants() (s elephant.ProgramStats, err error) {
	if o.duty == elephant.Nothing {
		return s, errNoElephants
	}
	err = o.use(func() error {
		var others SprayStats
		return kernel.SumCounters(o.counts, append(others.counters(), &s.Counted, &s.Pinned, &s.Unpinned)...)
	})
	return s, err
}
