package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// clsactMap is bound to programs at a clsact qdisc that weft has made. So a
// process that removes the last program knows that the qdisc is weft's, too.
const clsactMap = "weft_clsact"

// clsactOf is the clsact qdisc of a device.
func clsactOf(port netlink.Link) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: port.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
}

// attachClsact puts a program there, in place of the one that is there.
func (f Filter) attachClsact(h *netlink.Handle, port netlink.Link, prog *ebpf.Program) error {
	err := h.QdiscAdd(clsactOf(port))
	ours := err == nil
	switch {
	case errors.Is(err, unix.EEXIST):
		if ours, err = ownClsact(h, port); err != nil {
			return err
		}
	case errors.Is(err, unix.ENODEV):
		return gone(port)
	case err != nil:
		return Explain(fmt.Errorf("clsact qdisc (kernel option NET_CLS_ACT): %w", err))
	}
	if ours {
		if err := bindClsact(prog); err != nil {
			return err
		}
	}
	filter := f.on(port.Attrs().Index)
	filter.Fd, filter.Name, filter.DirectAction = prog.FD(), f.Name, true
	if err := h.FilterReplace(filter); err != nil {
		return Explain(fmt.Errorf("tc filter (kernel option NET_CLS_BPF): %w", err))
	}
	return nil
}

// on is the filter at a device with this index.
func (f Filter) on(index int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: f.parent,
		Handle: 1, Protocol: unix.ETH_P_ALL, Priority: f.priority}}
}

// inClsact returns the filter of this name, nil if there is none.
func (f Filter) inClsact(h *netlink.Handle, port netlink.Link) (*netlink.BpfFilter, error) {
	filters, err := clsactFilters(h, port, f.parent)
	if err != nil {
		return nil, err
	}
	for _, have := range filters {
		if bpf, ok := have.(*netlink.BpfFilter); ok && bpf.Name == f.Name {
			return bpf, nil
		}
	}
	return nil, nil
}

// clsactFilters are those of one direction; none where there is no qdisc.
func clsactFilters(h *netlink.Handle, port netlink.Link, parent uint32) ([]netlink.Filter, error) {
	filters, err := Dumped(func() ([]netlink.Filter, error) { return h.FilterList(port, parent) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV) {
		return nil, nil // no such qdisc, no such device
	}
	if err != nil {
		return nil, Explain(fmt.Errorf("tc filters of %s: %w", port.Attrs().Name, err))
	}
	return filters, nil
}

// detachClsact removes the filter that is there.
func (f Filter) detachClsact(h *netlink.Handle, port netlink.Link) error {
	ours, err := ownClsact(h, port)
	if err != nil {
		return err
	}
	err = h.FilterDel(f.on(port.Attrs().Index))
	if errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return Explain(fmt.Errorf("remove tc filter %s from %s: %w", f.Name, port.Attrs().Name, err))
	}
	if !ours {
		return nil
	}
	return removeEmptyClsact(h, port)
}

// removeEmptyClsact removes the qdisc unless anybody has a filter there.
func removeEmptyClsact(h *netlink.Handle, port netlink.Link) error {
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		filters, err := clsactFilters(h, port, parent)
		if err != nil || len(filters) > 0 {
			return err
		}
	}
	if err := h.QdiscDel(clsactOf(port)); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return Explain(fmt.Errorf("remove the clsact qdisc of %s: %w", port.Attrs().Name, err))
	}
	return nil
}

// ownClsact reports whether weft has made the qdisc, as one of its programs there
// says. Who may not ask (CAP_SYS_ADMIN) takes it for another's.
func ownClsact(h *netlink.Handle, port netlink.Link) (bool, error) {
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		filters, err := clsactFilters(h, port, parent)
		if err != nil {
			return false, err
		}
		for _, have := range filters {
			bpf, ok := have.(*netlink.BpfFilter)
			if !ok || !isWefts(bpf.Name) {
				continue
			}
			if hasMadeClsact(ebpf.ProgramID(bpf.Id)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// isWefts reports whether a clsact filter is one of weft's by its name.
func isWefts(name string) bool {
	for _, f := range weftFilters {
		if f.Name == name {
			return true
		}
	}
	return false
}

// bindClsact notes with a program that weft has made the qdisc.
func bindClsact(prog *ebpf.Program) error {
	id, err := programID(prog)
	if err != nil {
		return err
	}
	ownPrograms.note(id, func(p *ownProgram) { p.madeClsact = true })
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: clsactMap, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return Explain(fmt.Errorf("eBPF map: %w", err))
	}
	defer m.Close()
	if err := prog.BindMap(m); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("eBPF map bound to a program (Linux 5.10): %w", err)
	}
	return nil
}

// hasMadeClsact reports whether a program has that note.
func hasMadeClsact(id ebpf.ProgramID) bool {
	if own, ok := ownPrograms.get(id); ok && own.madeClsact {
		return true
	}
	m, err := MapOf(id, clsactMap)
	if err != nil {
		return false
	}
	m.Close()
	return true
}
