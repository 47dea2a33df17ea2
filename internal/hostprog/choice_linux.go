package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
)

// drawn is what the program shares with the process that chooses paths for it.
type drawn struct {
	choices, active *ebpf.Map
	flowcells       []uint64 // by number of rack, when last asked
}

// choiceValue is struct choice of bpf/choice.h.
type choiceValue struct {
	Group, Step uint32
	Until       uint64
}

// activityValue is struct activity of bpf/choice.h.
type activityValue struct {
	Flowcells uint64
	Host      [4]byte
	_         [4]byte
}

// Choose makes flowcells to a rack that begin within valid from now take a path, by its
// number in the PathSet to the rack. It replaces the former choice; a valid of 0 removes
// it. Without a choice each flowcell takes a random live path. Flowcells under way keep
// their paths. A change of topology that gives the rack other paths removes the choice.
//
// It is for the policy luopan: the program does not sample. It costs a system call, and
// fails if the path is not live.
func (o *Spray) Choose(rack netip.Prefix, path int, valid time.Duration) error {
	return o.use(func() error {
		if err := o.choose(rack, path, valid); err != nil {
			return fmt.Errorf("spray: Choose: %w", err)
		}
		return nil
	})
}

func (o *Spray) choose(rack netip.Prefix, path int, valid time.Duration) error {
	i, g, err := o.choosable(rack)
	if err != nil {
		return err
	}
	step := slices.Index(g.visits, path)
	if step < 0 {
		return fmt.Errorf("path %d to %v is not live; choose one of the present topology's", path, rack)
	}
	now, err := kernel.Monotonic()
	if err != nil {
		return err
	}
	c := choiceValue{Group: g.number, Step: uint32(step), Until: now + uint64(max(0, valid))}
	if err := o.drawn.choices.Put(uint32(i), c); err != nil {
		return fmt.Errorf("way to %v: %w", rack, err)
	}
	return nil
}

// choosable returns a rack's number and its paths.
func (o *Spray) choosable(rack netip.Prefix) (int, *sprayGroup, error) {
	if o.ways.known.how.mode != sprayDrawn {
		return 0, nil, fmt.Errorf("policy %s does not take paths that it is told", o.ways.known.policy.Name)
	}
	i, ok := o.ways.index[rack]
	if !ok {
		return 0, nil, fmt.Errorf("%v is no other rack of the fabric", rack)
	}
	return i, o.ways.by[rack], nil
}

// Active calls f for each rack to which flowcells have begun since the last call, with
// their number and the host of the latest one. Only flowcells for which the program draws
// paths count (luopan, rand). One goroutine at a time may call it. It costs one system
// call for any number of racks. f may call Choose.
func (o *Spray) Active(f func(rack netip.Prefix, host netip.Addr, flowcells uint64)) error {
	var now []activityValue
	var before []uint64
	err := o.use(func() (err error) {
		if now, before, err = o.activity(); err != nil {
			return fmt.Errorf("spray: Active: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, a := range now {
		if n := a.Flowcells - before[i]; n > 0 {
			f(o.ways.all[i].prefix, netip.AddrFrom4(a.Host), n)
		}
	}
	return nil
}

// activity reads what the program has written, and what it had last time.
func (o *Spray) activity() (now []activityValue, before []uint64, err error) {
	if o.ways.known.how.mode != sprayDrawn {
		return nil, nil, nil
	}
	n := len(o.ways.all)
	now = make([]activityValue, n)
	var cursor ebpf.MapBatchCursor
	got, err := o.drawn.active.BatchLookup(&cursor, make([]uint32, n), now, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // that is the end
		return nil, nil, err
	}
	now = now[:got]
	before = o.drawn.flowcells
	if before == nil {
		before = make([]uint64, n)
	}
	o.drawn.flowcells = make([]uint64, n)
	for i, a := range now {
		o.drawn.flowcells[i] = a.Flowcells
	}
	return now, before, nil
}
