package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// knob is a setting of an uplink that weft changes.
type knob struct {
	name  string
	limit bool // weft sets the most that it can do with; what is less stays, unless that is above MaxSuper
	get   func(*netlink.LinkAttrs) uint32
	set   func(*netlink.Handle, netlink.Link, int) error
}

var uplinkKnobs = [...]knob{
	{"gso_max_segs", false, func(a *netlink.LinkAttrs) uint32 { return a.GSOMaxSegs }, (*netlink.Handle).LinkSetGSOMaxSegs},
	{"gso_ipv4_max_size", true, func(a *netlink.LinkAttrs) uint32 { return a.GSOIPv4MaxSize }, (*netlink.Handle).LinkSetGSOIPv4MaxSize},
	{"gro_ipv4_max_size", true, func(a *netlink.LinkAttrs) uint32 { return a.GROIPv4MaxSize }, (*netlink.Handle).LinkSetGROIPv4MaxSize},
	{"gso_max_size", true, func(a *netlink.LinkAttrs) uint32 { return a.GSOMaxSize }, (*netlink.Handle).LinkSetGSOMaxSize},
	{"gro_max_size", true, func(a *netlink.LinkAttrs) uint32 { return a.GROMaxSize }, (*netlink.Handle).LinkSetGROMaxSize},
}

// Numbers of uplinkKnobs.
const (
	GSOSegments = iota
	GSOSize
	GROSize
	GSOSize6 // the kernel sets GSOSize to the same, so this one is set first
	GROSize6 // the same of GROSize
)

// MaxSuper is the kernel's GSO_LEGACY_MAX_SIZE, the default of devices. A longer
// super-segment has no length in its IP header (BIG TCP). Only the programs at uplinks and
// switches can do with those, and of IPv4 alone.
const MaxSuper = 65536

// MaxLongSuper is GSO_MAX_SIZE, the most that a device can have.
const MaxLongSuper = 8 * 65535

// Wanted has values by the numbers of uplinkKnobs; 0: weft leaves the setting
// alone.
type Wanted [len(uplinkKnobs)]uint32

// setting is the value before weft, and the value that weft has set; 0, 0: weft
// has set nothing.
type setting struct{ Former, Set uint32 }

// Settings are the changes to an uplink; nil: none. They are kept in a map that is bound to the
// attached program, so that a later process finds them when this one crashes.
type Settings struct {
	wanted  Wanted
	changed changes
	program ebpf.ProgramID // that has the record
	record  *ebpf.Map      // nil: none
	ours    bool           // they were read of a program that this process has open
}

// changes are by the numbers of uplinkKnobs.
type changes [len(uplinkKnobs)]setting

const (
	settingsMap = "weft_settings"
	knobsMap    = "weft_knobs" // of weft before: gso_max_segs, which was set to 1, alone
)

// Plan says what to change at a device. former is what was changed for the
// program that is there now. Plan itself changes nothing.
func (w Wanted) Plan(link netlink.Link, former *Settings) *Settings {
	s := &Settings{wanted: w}
	for i, k := range uplinkKnobs {
		now := k.get(link.Attrs())
		if f := former.changed[i]; f.Set != 0 && now == f.Set {
			now = f.Former
		}
		if w[i] != 0 && k.wrong(now, w[i]) {
			s.changed[i] = setting{now, w[i]}
		}
	}
	return s
}

func (k knob) wrong(now, want uint32) bool {
	if k.limit && want <= MaxSuper {
		return now > want
	}
	return now != want
}

// Bind makes the record part of a program.
func (s *Settings) Bind(prog *ebpf.Program) (err error) {
	if s.program, err = programID(prog); err != nil {
		return err
	}
	s.record, err = ebpf.NewMap(&ebpf.MapSpec{Name: settingsMap, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(uplinkKnobs))})
	if err != nil {
		return Explain(fmt.Errorf("eBPF map: %w", err))
	}
	if err := s.write(); err != nil {
		return err
	}
	if err := prog.BindMap(s.record); err != nil {
		if NotTheKernels(err) {
			return Explain(fmt.Errorf("eBPF map bound to a program: %w", err))
		}
		return fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err)
	}
	return nil
}

func (s *Settings) write() error {
	changed := s.changed
	ownPrograms.note(s.program, func(p *ownProgram) { p.settings = &changed })
	for i, c := range s.changed {
		if err := s.record.Put(uint32(i), c); err != nil {
			return fmt.Errorf("record of settings: %w", err)
		}
	}
	return nil
}

// Apply makes the changes, and undoes those of former that are not among them.
func (s *Settings) Apply(h *netlink.Handle, link netlink.Link, former *Settings) error {
	var aside [len(uplinkKnobs)]bool // what the kernel may have changed with another one
	for i, k := range slices.Backward(uplinkKnobs[:]) {
		target, now := s.changed[i].Set, k.get(link.Attrs())
		if f := former.changed[i]; target == 0 && f.Set != 0 && now == f.Set {
			target = f.Former
		}
		if target == 0 && aside[i] {
			target = now
		}
		if target == 0 || target == now && !aside[i] {
			continue
		}
		if err := k.change(h, link, target); err != nil {
			return err
		}
		if i >= GSOSize6 {
			aside[i-GSOSize6+GSOSize] = true
		}
	}
	return nil
}

// mend makes the changes again that others have undone, and describes them. What they
// have set is what is put back in the end.
func (s *Settings) mend(h *netlink.Handle, link netlink.Link) (mended []string, err error) {
	attrs, err := AttrsOf(h, link)
	if err != nil {
		return nil, err
	}
	for i, k := range uplinkKnobs {
		want, now := s.wanted[i], k.get(attrs)
		if want == 0 || !k.wrong(now, want) {
			continue
		}
		s.changed[i] = setting{now, want}
		if err := s.write(); err != nil {
			return mended, err
		}
		if err := k.change(h, link, want); err != nil {
			return mended, err
		}
		if four := i - GSOSize6 + GSOSize; i >= GSOSize6 && s.wanted[four] != 0 { // the kernel has set that, too
			if err := uplinkKnobs[four].change(h, link, s.wanted[four]); err != nil {
				return mended, err
			}
		}
		mended = append(mended, fmt.Sprintf("set %s of %s to %d again, which was %d", k.name, attrs.Name, want, now))
	}
	return mended, nil
}

// Wanted is what a setting is to be.
func (s *Settings) Wanted(number int) uint32 { return s.wanted[number] }

// Want changes what a setting is to be, and has it so. 0 leaves the setting alone from now on,
// and puts the former value back.
func (s *Settings) Want(h *netlink.Handle, link netlink.Link, number int, value uint32) error {
	attrs, err := AttrsOf(h, link)
	if err != nil {
		return err
	}
	k, c := uplinkKnobs[number], &s.changed[number]
	s.wanted[number] = value
	former := k.get(attrs)
	if c.Set == former {
		former = c.Former
	}
	if *c = (setting{former, value}); value == 0 || !k.wrong(former, value) {
		value, *c = former, setting{}
	}
	if err := s.write(); err != nil {
		return err
	}
	return k.change(h, link, value)
}

// Restore puts the former values back, unless somebody else has changed them meanwhile.
func (s *Settings) Restore(h *netlink.Handle, link netlink.Link) error {
	if s == nil || s.changed == (changes{}) {
		return nil
	}
	attrs, err := AttrsOf(h, link)
	if errors.Is(err, ErrUplinkGone) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, k := range slices.Backward(uplinkKnobs[:]) {
		if c := s.changed[i]; c.Set != 0 && k.get(attrs) == c.Set {
			err = errors.Join(err, k.change(h, link, c.Former))
		}
	}
	return err
}

// Close closes the record, which stays with the program.
func (s *Settings) Close() {
	if s != nil {
		s.record.Close() // of nil, too
	}
}

func (k knob) change(h *netlink.Handle, link netlink.Link, value uint32) error {
	if err := k.set(h, link, int(value)); err != nil {
		return Explain(fmt.Errorf("%s %d of %s: %w", k.name, value, link.Attrs().Name, err))
	}
	return nil
}

// AttrsOf reads what a device has now.
func AttrsOf(h *netlink.Handle, link netlink.Link) (*netlink.LinkAttrs, error) {
	now, err := h.LinkByIndex(link.Attrs().Index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, gone(link)
	}
	if err != nil {
		return nil, Explain(fmt.Errorf("device %s: %w", link.Attrs().Name, err))
	}
	return now.Attrs(), nil
}

// FormerSettings are the settings recorded with the program that is attached to a device;
// none if there is no program.
func (f Filter) FormerSettings(h *netlink.Handle, link netlink.Link) (*Settings, error) {
	id, err := f.Program(h, link)
	if err != nil || id == 0 {
		return &Settings{}, err
	}
	return SettingsOf(id)
}

// SettingsOf reads the record of a program.
func SettingsOf(id ebpf.ProgramID) (*Settings, error) {
	s := &Settings{}
	if own, ok := ownPrograms.get(id); ok && own.settings != nil {
		s.changed, s.ours = *own.settings, own.open != nil
		return s, nil
	}
	prog, err := openProgram(id)
	if err != nil {
		return s, err
	}
	defer prog.Close()
	m, err := ProgramMap(prog, settingsMap)
	if errors.Is(err, ErrNoMap) {
		return s, s.readKnobs(prog)
	}
	if err != nil {
		return s, err
	}
	defer m.Close()
	for i := range s.changed {
		if err := m.Lookup(uint32(i), &s.changed[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return s, err
		}
	}
	return s, nil
}

// Ours reports whether the settings are recorded with a program that this process has open.
func (s *Settings) Ours() bool { return s.ours }

// readKnobs reads the record that weft kept before.
func (s *Settings) readKnobs(prog *ebpf.Program) error {
	m, err := ProgramMap(prog, knobsMap)
	if errors.Is(err, ErrNoMap) {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Close()
	c := &s.changed[GSOSegments]
	if err := m.Lookup(uint32(0), &c.Former); err != nil || c.Former == 0 {
		return err
	}
	c.Set = 1
	return nil
}
