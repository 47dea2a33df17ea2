package hostprog

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"weft/conga"
	"weft/encap"
	"weft/policy"
	"weft/topology"
)

// lpmKey is struct prefix of bpf/spray.c, and lpmKey6 struct prefix6.
type (
	lpmKey struct {
		Length uint32
		Addr   [4]byte
	}
	lpmKey6 struct {
		Length uint32
		Addr   [16]byte
	}
)

// lpmOf returns a prefix as the table of its family has it.
func lpmOf(p netip.Prefix) any {
	if p.Addr().Is6() {
		return lpmKey6{uint32(p.Bits()), p.Addr().As16()}
	}
	return lpmKey{uint32(p.Bits()), p.Addr().As4()}
}

// groupValue is struct group of bpf/spray.c.
type groupValue struct {
	N, Mode, Shift    uint32
	CellBytes, Number uint32
	Gap               uint32
	Ends              [conga.Tags]uint32
	Order             [maxPaths]pathWord
}

// rackValue is struct rack of bpf/spray.c.
type rackValue struct {
	Group, Number uint32
	SIDs          [16]byte
	Plain         uint32
	Outer         outerKind
	Longest, _    uint32
}

// tickShift is from ns to the program's ticks, of bpf/cutter.h.
const tickShift = 10

// noNumber is the number of a rack of which choices and activity are not kept.
const noNumber = ^uint32(0)

// firstGroup6 is before the first number of a group of IPv6: both families share the table.
const firstGroup6 = 1 << 31

// maxAlone is the most hosts that have other ways than their racks
// (topology.Avoided). Each has two addresses.
const maxAlone = 256

// ways are the program's tables for one family: the racks' groups of paths, and those of
// single hosts, which the program finds first. 2,048 racks, the most that 64-port switches
// make, take 8 MB of kernel memory if no two of them have the same paths.
type ways struct {
	racks, groups *ebpf.Map

	fabric   *topology.Topology // whatever is down
	all      []sprayRack        // by their numbers
	behind   []sprayRack        // prefixes behind hosts of these
	index    map[netip.Prefix]int
	known    *sprayGroups
	by       map[netip.Prefix]*sprayGroup // what is in racks
	alone    map[netip.Addr]bool          // hosts that have ways of their own
	unused   []*sprayGroup                // in groups, but in no use since the last change
	last     uint32                       // number of a group
	narrow   map[netip.Prefix]int         // racks to which only smaller packets arrive
	plain    map[netip.Prefix]bool        // racks to which packets leave as they are
	epochs   map[netip.Prefix]uint32      // of racks that were plain once
	epoch    uint32                       // the latest
	topology *topology.Topology           // that all is for, or was before an error
	words    *wordBook
}

func newWays(t *topology.Topology, self topology.NodeID, p policy.Policy, c encap.Carrier, several bool) (*ways, error) {
	known, err := newSprayGroups(self, p)
	if err != nil {
		return nil, err
	}
	all, words, err := racksAndWords(t, self, c, several)
	if err != nil {
		return nil, err
	}
	w := &ways{fabric: t, all: all, index: make(map[netip.Prefix]int, len(all)), known: known,
		by: make(map[netip.Prefix]*sprayGroup), alone: make(map[netip.Addr]bool),
		plain: make(map[netip.Prefix]bool), epochs: make(map[netip.Prefix]uint32)}
	if w.six() {
		w.last = firstGroup6
	}
	w.words = words
	for i, r := range all {
		w.index[r.prefix] = i
	}
	return w, nil
}

// six reports whether these are for IPv6.
func (w *ways) six() bool { return w.fabric.Node(w.known.self).Addr.Is6() }

// size makes room in the tables: while a change goes on there are groups of
// before and after.
func (w *ways) size(spec *ebpf.CollectionSpec) {
	n := uint32(max(1, len(w.all)))
	racks, groups := n+2*maxAlone+uint32(len(w.behind)), 3*n+2*maxAlone
	if w.six() {
		spec.Maps[sprayMapRacks6].MaxEntries = racks
		spec.Maps[sprayMapGroups].MaxEntries += groups
		return
	}
	spec.Maps[sprayMapRacks].MaxEntries = racks
	spec.Maps[sprayMapGroups].MaxEntries = groups
	if w.known.how.mode != sprayDrawn {
		n = 1
	}
	spec.Maps[sprayMapChoices].MaxEntries = n
	spec.Maps[sprayMapActive].MaxEntries = n
}

// change carries the tables over to a topology and writes only what differs. A
// rack with other paths gets a group of another number, which ends the flowcells
// under way: the receiver takes a gap inside a flowcell for loss.
func (w *ways) change(t *topology.Topology) error {
	racks, touched := w.all, func(sprayRack) bool { return true }
	if w.topology != nil {
		changed, ok := w.topology.Diff(t)
		if !ok {
			return fmt.Errorf("%s is another fabric than %s; attach anew", t, w.topology)
		}
		touched = func(r sprayRack) bool {
			return slices.ContainsFunc(changed, func(l topology.LinkID) bool { return t.OnPaths(l, w.known.self, r.edge) })
		}
		racks = slices.DeleteFunc(slices.Clone(racks), func(r sprayRack) bool { return !touched(r) })
	}
	if err := w.forget(); err != nil {
		return err
	}
	toAll := t.Avoiding()
	for _, rack := range racks {
		if err := w.lead(rack, toAll); err != nil {
			return err
		}
	}
	was := maps.Clone(w.alone)
	if err := w.leadAlone(t); err != nil {
		return err
	}
	if err := w.leadBehind(t, func(b sprayRack) bool { return was[b.host] || w.alone[b.host] || touched(b) }); err != nil {
		return err
	}
	w.topology = t
	return nil
}

// forget deletes the groups that the last change has left unused. By now no packet
// is under way by these.
func (w *ways) forget() error {
	for _, g := range w.unused {
		if err := w.groups.Delete(g.number); err != nil {
			return fmt.Errorf("eBPF table: group %d: %w", g.number, err)
		}
	}
	w.unused = w.unused[:0]
	return nil
}

// leadAlone gives the hosts ways of their own on whose paths something is avoided
// that others of their racks do not avoid, and takes them from all others.
func (w *ways) leadAlone(t *topology.Topology) error {
	want := make(map[netip.Addr]bool)
	for _, a := range t.Avoided() {
		if a.Src == w.known.self && len(want) < maxAlone {
			want[a.Dst] = true
		}
	}
	for host := range w.alone {
		if want[host] {
			continue
		}
		for _, p := range addressesOf(t, host) {
			if err := w.racks.Delete(lpmOf(p)); err != nil {
				return fmt.Errorf("eBPF table: way to %v: %w", p, err)
			}
			w.leave(w.by[p])
			delete(w.by, p)
		}
		delete(w.alone, host)
	}
	for host := range want {
		for _, p := range addressesOf(t, host) {
			r, ok := w.rackOf(host)
			if !ok {
				continue // its own
			}
			r.prefix, r.host = p, host
			if err := w.lead(r, t); err != nil {
				return err
			}
			w.alone[host] = true
		}
	}
	return nil
}

// rackOf returns the rack of a host.
func (w *ways) rackOf(host netip.Addr) (rack sprayRack, ok bool) {
	edge, _ := w.fabric.RackAt(host)
	for _, prefix := range w.fabric.RackPrefixesOf(edge, w.six()) {
		if i, known := w.index[prefix]; known && prefix.Contains(host) {
			return w.all[i], true
		}
	}
	return sprayRack{}, false
}

// addressesOf returns a host's addresses: that of its kernel, and that of its embedded
// stack if the fabric computes one.
func addressesOf(t *topology.Topology, host netip.Addr) []netip.Prefix {
	list := []netip.Prefix{netip.PrefixFrom(host, host.BitLen())}
	if id, ok := t.ByAddr(host); ok && t.Computed() {
		list = append(list, netip.PrefixFrom(t.EmbeddedAddr(id), 32))
	}
	return list
}

// lead gives a rack its way, or a host of it.
func (w *ways) lead(rack sprayRack, t *topology.Topology) error {
	g, err := w.known.to(rack, t, w.epochs[rack.of])
	if err != nil {
		return err
	}
	old := w.by[rack.prefix]
	if g == old {
		return nil
	}
	if g.number == 0 {
		w.last++
		if err := w.groups.Put(w.last, g.value(w.last, w.known.policy)); err != nil {
			return fmt.Errorf("eBPF table: group %d: %w", w.last, err)
		}
		g.number = w.last
	}
	if err := w.write(rack, g); err != nil {
		return err
	}
	w.by[rack.prefix] = g
	g.racks++
	w.leave(old)
	return nil
}

// write puts a rack, or a host, into the table.
func (w *ways) write(rack sprayRack, g *sprayGroup) error {
	value := rackValue{Group: g.number, Number: uint32(w.index[rack.of]), SIDs: rack.sids, Outer: w.words.outer}
	if w.six() {
		value.Number = noNumber
	}
	value.Longest = uint32(w.narrow[rack.of])
	if w.plain[rack.of] {
		value.Plain = 1
	}
	if err := w.racks.Put(lpmOf(rack.prefix), value); err != nil {
		return fmt.Errorf("eBPF table: way to %v: %w", rack.prefix, err)
	}
	return nil
}

// leave takes a rack, or a host, out of its group.
func (w *ways) leave(g *sprayGroup) {
	if g == nil {
		return
	}
	if g.racks--; g.racks == 0 {
		delete(w.known.groups, g.key)
		w.unused = append(w.unused, g)
	}
}

func (g *sprayGroup) value(number uint32, p policy.Policy) *groupValue {
	v := &groupValue{N: uint32(len(g.order)), Mode: uint32(g.mode), Shift: g.shift,
		CellBytes: uint32(p.Unit.Bytes), Number: number, Gap: uint32(p.Unit.Gap >> tickShift), Ends: g.ends}
	copy(v.Order[:], g.order)
	return v
}
