package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"weft/internal/balance"
	"weft/internal/elephant"
	"weft/internal/kernel"
)

var errNoElephants = errors.New("balance: attached without Elephants, so no flow is counted or pinned")

// Flows reads what has been counted, with BalanceConfig.Elephants PinAndCount. It may use the
// slice.
func (b *Balance) Flows(counts []elephant.Count) ([]elephant.Count, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.handle == nil:
		return nil, errBalanceClosed
	case b.duty != elephant.PinAndCount:
		return nil, errNoElephants
	}
	return kernel.FlowCounts(b.in.Maps[kernel.ElephantFlowsMap], counts)
}

// SetPins makes the pinned flows these, at most elephant.MaxPins. A pin has no effect while its
// port is no live next hop of the flow's route, which Repair looks up again. It keeps the slice.
func (b *Balance) SetPins(pins []PortPin) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.handle == nil:
		return errBalanceClosed
	case b.duty == elephant.Nothing:
		return errNoElephants
	}
	for _, p := range pins {
		if err := p.Flow.Check(); err != nil {
			return fmt.Errorf("balance: %w", err)
		}
	}
	b.pins = pins[:min(len(pins), elephant.MaxPins)]
	return b.putPins()
}

// putPins writes the pins, with what the routes are at present.
func (b *Balance) putPins() error {
	if b.duty == elephant.Nothing {
		return nil
	}
	if b.obeyed == nil {
		b.obeyed = kernel.NewMirror[elephant.Key, kernel.PinValue](b.in.Maps[kernel.ElephantPinsMap])
	}
	index := portIndexes(b.links)
	sets := knownSets{make(map[netip.Addr]uint32), make(map[uint32]*balance.Set)}
	want := make(map[elephant.Key]kernel.PinValue)
	for _, p := range b.pins {
		s, err := b.setOf(p.Flow.Dst.Addr(), sets)
		if err != nil {
			return fmt.Errorf("balance: pin of %v: %w", p.Flow, err)
		}
		i, here := index[p.Port]
		step := slices.IndexFunc(s.Steps[:s.N], func(s balance.Step) bool { return s.Port == uint32(i) })
		if here && step >= 0 {
			want[p.Flow.Key()] = kernel.PinValue{Until: p.Until, Way: uint32(i), Among: uint32(step)}
		}
	}
	if _, err := b.obeyed.Set(want); err != nil {
		return fmt.Errorf("balance: pins: %w", kernel.Explain(err))
	}
	return nil
}

// knownSets is what has been read of the routes.
type knownSets struct {
	by   map[netip.Addr]uint32
	sets map[uint32]*balance.Set
}

// setOf returns the set by which packets to an address are balanced, an empty one if there is
// none.
func (b *Balance) setOf(to netip.Addr, known knownSets) (*balance.Set, error) {
	n, ok := known.by[to]
	if !ok {
		var err error
		if to.Is4() {
			err = b.in.Maps[balanceMapDestinations].Lookup(destination{32, to.As4()}, &n)
		} else {
			err = b.in.Maps[balanceMapDestinations6].Lookup(destination6{128, to.As16()}, &n)
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			n = noSet
		case err != nil:
			return nil, err
		}
		known.by[to] = n
	}
	if known.sets[n] == nil {
		s := new(balance.Set)
		if err := b.in.Maps[balanceMapSets].Lookup(n, s); err != nil {
			return nil, err
		}
		known.sets[n] = s
	}
	return known.sets[n], nil
}

// Elephants returns what the programs have counted of elephants.
func (b *Balance) Elephants() (s elephant.ProgramStats, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handle == nil {
		return s, errBalanceClosed
	}
	if b.duty == elephant.Nothing {
		return s, errNoElephants
	}
	var others BalanceStats
	return s, b.in.Counters(append(others.sums(), &s.Counted, &s.Pinned, &s.Unpinned)...)
}
