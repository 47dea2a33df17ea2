package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
)

var errRequired = errors.New("spray: SetPlain: SprayConfig.Require is set, by which packets to other racks leave encapsulated or not at all; leave it out")

// SetPlain says for each rack but the host's own, by its prefixes of both families, whether
// packets to it go plain, by the routes of the kernel and the fabric. During the call each packet follows
// the former setting or the new one; after it, the new one. SetTopology keeps the
// setting. plain is called under a lock, once for each prefix, and must not call the Spray.
// The cost grows with the racks whose setting has changed.
func (o *Spray) SetPlain(plain func(rack netip.Prefix) bool) error {
	if o.require {
		return errRequired
	}
	return o.use(func() error {
		for _, w := range o.families() {
			if err := w.setPlain(plain); err != nil {
				return fmt.Errorf("spray: SetPlain: %w", err)
			}
		}
		return o.putPins()
	})
}

// startPlain is for tables that are still empty.
func (w *ways) startPlain(carried func(rack netip.Prefix) bool) {
	for _, rack := range w.all {
		if carried == nil || !carried(rack.prefix) {
			w.plain[rack.prefix] = true
		}
	}
}

// setPlain begins an epoch for a rack that becomes plain. So its flows begin new flowcells
// when it is sprayed again. Otherwise the plain packets would be missing from their
// flowcells, and the receiver takes a gap inside a flowcell for loss.
func (w *ways) setPlain(plain func(rack netip.Prefix) bool) error {
	first := true
	toAll := w.topology.Avoiding()
	for _, rack := range w.all {
		now := plain(rack.prefix)
		if now == w.plain[rack.prefix] {
			continue
		}
		if first {
			if err := w.forget(); err != nil {
				return err
			}
			w.epoch++
			first = false
		}
		if !now {
			delete(w.plain, rack.prefix)
			if err := errors.Join(w.write(rack, w.by[rack.prefix]), w.writeAlone(rack), w.writeBehind(rack)); err != nil {
				w.plain[rack.prefix] = true
				return err
			}
			continue
		}
		w.plain[rack.prefix], w.epochs[rack.prefix] = true, w.epoch
		if err := errors.Join(w.lead(rack, toAll), w.leadAlone(w.topology), w.writeAlone(rack), w.leadBehind(w.topology, func(b sprayRack) bool { return b.of == rack.of })); err != nil {
			delete(w.plain, rack.prefix)
			return err
		}
	}
	return nil
}

// writeAlone writes those hosts of a rack anew that have ways of their own.
func (w *ways) writeAlone(rack sprayRack) (err error) {
	for host := range w.alone {
		for _, p := range addressesOf(w.topology, host) {
			if g := w.by[p]; g != nil && rack.prefix.Contains(p.Addr()) {
				r := rack
				r.prefix, r.host = p, host
				err = errors.Join(err, w.write(r, g))
			}
		}
	}
	return err
}
