package fabric

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// knobs are the settings of an uplink as they were before an Offload changed
// them. They are kept in a map that is bound to the attached program, and so
// are where a later process finds them when this one crashes.
type knobs struct {
	GSOMaxSegs uint32 // 0: not changed
}

const knobsMap = "weft_knobs"

// formerKnobs returns the record of a program that is attached to a device,
// nothing if none is.
func formerKnobs(h *netlink.Handle, link netlink.Link) (knobs, error) {
	id, err := sprayFilter.program(h, link)
	if err != nil || id == 0 {
		return knobs{}, err
	}
	return knobsOf(id)
}

// updated returns the record for what is set now, unless that is what an earlier
// Offload has set: it is not what was there before weft.
func (k knobs) updated(link netlink.Link) knobs {
	if now := link.Attrs().GSOMaxSegs; now != 1 || k.GSOMaxSegs == 0 {
		k.GSOMaxSegs = now
	}
	return k
}

// bind makes a record part of a program.
func (k knobs) bind(prog *ebpf.Program) error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: knobsMap, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return explain(fmt.Errorf("eBPF map: %w", err))
	}
	defer m.Close()
	if err := m.Put(uint32(0), k); err != nil {
		return err
	}
	if err := prog.BindMap(m); err != nil {
		if notTheKernels(err) {
			return explain(fmt.Errorf("eBPF map bound to a program: %w", err))
		}
		return fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err)
	}
	return nil
}

// knobsOf reads the record of a program.
func knobsOf(id ebpf.ProgramID) (k knobs, err error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return k, explain(fmt.Errorf("eBPF program %d: %w", id, err))
	}
	defer prog.Close()
	m, err := programMap(prog, knobsMap)
	if err != nil {
		return k, err
	}
	defer m.Close()
	err = m.Lookup(uint32(0), &k)
	return k, err
}

// restore puts a setting back, unless somebody else has changed it meanwhile.
func (k knobs) restore(h *netlink.Handle, link netlink.Link) error {
	if k.GSOMaxSegs == 0 {
		return nil
	}
	now, err := h.LinkByIndex(link.Attrs().Index)
	if err != nil {
		return explain(err)
	}
	if now.Attrs().GSOMaxSegs != 1 {
		return nil
	}
	return setGSOMaxSegs(h, link, int(k.GSOMaxSegs))
}

func setGSOMaxSegs(h *netlink.Handle, link netlink.Link, n int) error {
	if err := h.LinkSetGSOMaxSegs(link, n); err != nil {
		return explain(fmt.Errorf("gso_max_segs %d of %s: %w", n, link.Attrs().Name, err))
	}
	return nil
}
