package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/topology"
)

// behindKey is struct behind_prefix of bpf/behind.h.
type behindKey struct {
	Length uint32
	Addr   [16]byte
}

func behindKeyOf(p netip.Prefix) behindKey {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	return behindKey{uint32(bits), p.Addr().As16()}
}

// The bits of the values of the maps own and behind of bpf/spray.c.
const (
	ownCuts   = 1
	ownBehind = 2
)

// putBehind writes the prefixes behind this host.
func putBehind(m *ebpf.Map, list []netip.Prefix, value uint8) error {
	for _, p := range list {
		if err := m.Put(behindKeyOf(p), value); err != nil {
			return fmt.Errorf("prefix %v behind this host: %w", p, err)
		}
	}
	return nil
}

// ownBehind lists the prefixes that are behind this host.
func (c SprayConfig) ownBehind() (list []netip.Prefix) {
	for _, b := range c.Behind {
		if slices.Contains(c.Addresses, b.Host) {
			list = append(list, b.Prefix)
		}
	}
	return list
}

// addBehind adds the prefixes behind hosts of other racks. Those that are a rack's already have
// that rack's way, and those of hosts that the fabric does not have go plain.
func (w *ways) addBehind(list []Behind) {
	for _, b := range list {
		r, ok := w.rackOf(b.Host)
		if _, known := w.index[b.Prefix]; !ok || known {
			continue
		}
		r.prefix, r.host = b.Prefix, b.Host
		w.behind = append(w.behind, r)
	}
}

// leadBehind gives the prefixes for which f is true the way of the host that they are behind.
func (w *ways) leadBehind(t *topology.Topology, f func(sprayRack) bool) error {
	for _, b := range w.behind {
		if !f(b) {
			continue
		}
		if err := w.lead(b, t); err != nil {
			return err
		}
	}
	return nil
}

// writeBehind writes the prefixes behind hosts of a rack anew.
func (w *ways) writeBehind(rack sprayRack) (err error) {
	for _, b := range w.behind {
		if g := w.by[b.prefix]; g != nil && b.of == rack.of {
			err = errors.Join(err, w.write(b, g))
		}
	}
	return err
}

// SetNarrow is SprayConfig.Narrow from now on.
func (o *Spray) SetNarrow(narrow map[netip.Prefix]int) error {
	return o.use(func() (err error) {
		for _, w := range o.families() {
			was := w.narrow
			w.narrow = narrow
			for _, rack := range w.all {
				if was[rack.prefix] != narrow[rack.prefix] && w.by[rack.prefix] != nil {
					err = errors.Join(err, w.write(rack, w.by[rack.prefix]), w.writeAlone(rack), w.writeBehind(rack))
				}
			}
		}
		return err
	})
}

// Forwarded is the table of the TCP connections that a host forwards for containers and virtual
// machines. The programs of a Spray write it, those of an Order and its user read it; it may
// outlive them. Methods are safe for concurrent use.
type Forwarded struct {
	m *ebpf.Map

	mu   sync.Mutex
	last []netip.Addr // of Remotes
	next time.Time    // when to look again
}

// forwardedBytes is what the kernel keeps of a connection in the table.
const forwardedBytes = 112

// NewForwarded makes an empty table, which takes at most a sixteenth of memory, in bytes; 0 means no
// limit. It needs CAP_BPF.
func NewForwarded(memory int64) (*Forwarded, error) {
	spec, err := loadSpray()
	if err != nil {
		return nil, err
	}
	table := spec.Maps[sprayMapForwarded]
	if memory > 0 {
		table.MaxEntries = uint32(min(int64(table.MaxEntries), max(memory/16/forwardedBytes, 1)))
	}
	m, err := ebpf.NewMap(table)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("table of forwarded connections: %w", err))
	}
	return &Forwarded{m: m}, nil
}

// Close frees the table once no program uses it.
func (f *Forwarded) Close() error { return f.m.Close() }

// connectionKey is struct connection of bpf/forwarded.h.
type connectionKey struct {
	Remote, Local [16]byte
	Ports         [4]byte
}

// forwardedTick is of the times in the table.
const forwardedTick = 1 << 30 * time.Nanosecond

// forwardedLong is how long a connection counts as in use after the end behind this host has sent.
const forwardedLong = 10 * forwardedTick

// Remotes returns the other ends of the connections in use, each once. It looks at the table at
// most twice a second, and takes a hundredth of a processor.
func (f *Forwarded) Remotes() ([]netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := time.Now()
	if began.Before(f.next) {
		return f.last, nil
	}
	list, err := f.remotes()
	f.next = began.Add(max(time.Second/2, 100*time.Since(began)))
	f.last = list
	return list, err
}

func (f *Forwarded) remotes() (list []netip.Addr, err error) {
	ns, err := kernel.Monotonic()
	if err != nil {
		return nil, err
	}
	now := time.Duration(ns)
	const batch = 1024
	keys, seen := make([]connectionKey, batch), make([]uint32, batch)
	all := make(map[netip.Addr]bool)
	var cursor ebpf.MapBatchCursor
	for done := false; !done; {
		n, err := f.m.BatchLookup(&cursor, keys, seen, nil)
		if done = errors.Is(err, ebpf.ErrKeyNotExist); err != nil && !done {
			return nil, fmt.Errorf("table of forwarded connections: %w", err)
		}
		for i, k := range keys[:n] {
			a := netip.AddrFrom16(k.Remote).Unmap()
			if now-time.Duration(seen[i])*forwardedTick < forwardedLong+forwardedTick && !all[a] {
				all[a] = true
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// share has a program use a table, or, without, none of its own.
func (f *Forwarded) share(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	if f == nil {
		spec.Maps[sprayMapForwarded].MaxEntries = 1
		return nil
	}
	spec.Maps[sprayMapForwarded].MaxEntries = f.m.MaxEntries()
	return map[string]*ebpf.Map{sprayMapForwarded: f.m}
}
