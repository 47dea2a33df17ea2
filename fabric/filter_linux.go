package fabric

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tcFilter is a place among the tc filters of a device's clsact qdisc. A filter
// there keeps its program, and the program its maps, when the process ends; a
// later process finds them by the filter's name.
type tcFilter struct {
	name     string
	parent   uint32 // netlink.HANDLE_MIN_INGRESS or HANDLE_MIN_EGRESS
	priority uint16 // lower ones run first
}

// The priorities are ones that no other filter is likely to have, so that ours
// replace none but ours. Steering looks at packets as they came in, as the
// packet sockets before it did, so it runs before decapsulation; what a lab
// has failed silently comes before everything.
var (
	silentFilter = tcFilter{"weft-silent", netlink.HANDLE_MIN_INGRESS, 0x5743}
	steerFilter  = tcFilter{"weft-steer", netlink.HANDLE_MIN_INGRESS, 0x5744}
	decapFilter  = tcFilter{"weft-decap", netlink.HANDLE_MIN_INGRESS, 0x5745}
	sprayFilter  = tcFilter{"weft-spray", netlink.HANDLE_MIN_EGRESS, 0x5746}
)

// attach puts a program there, in place of the one that is there.
func (f tcFilter) attach(h *netlink.Handle, port netlink.Link, prog *ebpf.Program) error {
	index := port.Attrs().Index
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := h.QdiscAdd(clsact); err != nil && !errors.Is(err, unix.EEXIST) {
		return explain(fmt.Errorf("clsact qdisc (kernel option NET_CLS_ACT): %w", err))
	}
	filter := f.on(index)
	filter.Fd, filter.Name, filter.DirectAction = prog.FD(), f.name, true
	if err := h.FilterReplace(filter); err != nil {
		return explain(fmt.Errorf("tc filter (kernel option NET_CLS_BPF): %w", err))
	}
	return nil
}

func (f tcFilter) on(index int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: f.parent,
		Handle: 1, Protocol: unix.ETH_P_ALL, Priority: f.priority}}
}

// program returns the ID of the program there, 0 if none.
func (f tcFilter) program(h *netlink.Handle, port netlink.Link) (ebpf.ProgramID, error) {
	filters, err := dumped(func() ([]netlink.Filter, error) { return h.FilterList(port, f.parent) })
	if err != nil {
		return 0, explain(fmt.Errorf("tc filters of %s: %w", port.Attrs().Name, err))
	}
	for _, have := range filters {
		if bpf, ok := have.(*netlink.BpfFilter); ok && bpf.Name == f.name {
			return ebpf.ProgramID(bpf.Id), nil
		}
	}
	return 0, nil
}

// find returns the program that is attached to ports already, or nil, and the
// indexes of the ports that have it. One of another version than spec's counts as
// absent.
func (f tcFilter) find(h *netlink.Handle, ports []netlink.Link, spec *ebpf.ProgramSpec) (*ebpf.Program, map[int]bool, error) {
	have := make(map[int]bool)
	var first ebpf.ProgramID
	for _, port := range ports {
		id, err := f.program(h, port)
		if err != nil {
			return nil, nil, err
		}
		if id != 0 && first == 0 {
			first = id
		}
		have[port.Attrs().Index] = id != 0 && id == first
	}
	if first == 0 {
		return nil, have, nil
	}
	prog, err := ebpf.NewProgramFromID(first)
	if err != nil {
		return nil, nil, explain(fmt.Errorf("eBPF program %d: %w", first, err))
	}
	info, err := prog.Info()
	if err != nil {
		prog.Close()
		return nil, nil, err
	}
	if spec.Compatible(info) != nil {
		prog.Close()
		return nil, map[int]bool{}, nil
	}
	return prog, have, nil
}

// detach removes the program that is there. The clsact qdisc stays: empty it
// does nothing, and it may be somebody else's.
func (f tcFilter) detach(h *netlink.Handle, port netlink.Link) error {
	if err := h.FilterDel(f.on(port.Attrs().Index)); err != nil && !errors.Is(err, unix.ENOENT) {
		return explain(fmt.Errorf("remove tc filter %s from %s: %w", f.name, port.Attrs().Name, err))
	}
	return nil
}

// detachAll removes the filter from ports, as far as they have it.
func (f tcFilter) detachAll(h *netlink.Handle, ports []netlink.Link) (changed int, err error) {
	for _, port := range ports {
		id, err := f.program(h, port)
		if err != nil {
			return changed, err
		}
		if id == 0 {
			continue
		}
		if err := f.detach(h, port); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// attachAll puts a program on the ports but those that have it already.
func (f tcFilter) attachAll(h *netlink.Handle, ports []netlink.Link, prog *ebpf.Program, have map[int]bool) (changed int, err error) {
	for _, port := range ports {
		if have[port.Attrs().Index] {
			continue
		}
		if err := f.attach(h, port, prog); err != nil {
			return changed, fmt.Errorf("port %s: %w", port.Attrs().Name, err)
		}
		changed++
	}
	return changed, nil
}

// loadObjects puts programs and maps of a specification into the kernel. needs
// says which kernel they are for.
func loadObjects(spec *ebpf.CollectionSpec, objects any, needs string) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return explain(fmt.Errorf("memory limit for eBPF: %w", err))
	}
	err := spec.LoadAndAssign(objects, nil)
	if err != nil && !notTheKernels(err) {
		// To explain a failure the library tries what the kernel can do, and takes a
		// lack of descriptors for a lack of that.
		if lack := tryDescriptors(len(spec.Maps) + len(spec.Programs) + loadSpare); lack != nil {
			err = fmt.Errorf("load programs and maps: %w", lack)
		}
	}
	if notTheKernels(err) {
		return explain(fmt.Errorf("eBPF: %w", err))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", needs, err)
	}
	return nil
}

// loadSpare is how many descriptors it takes to load objects besides theirs: types,
// and what is opened meanwhile.
const loadSpare = 4

// tryDescriptors says why this process cannot open n descriptors, nil if it can.
func tryDescriptors(n int) error {
	for range n {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	return nil
}

// tcNeeds is for programs that need no more than this.
const tcNeeds = "eBPF: tc programs as of Linux 5.15 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// programID returns the number by which a filter knows a program.
func programID(prog *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := prog.Info()
	if err != nil {
		return 0, err
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("eBPF: the kernel does not number its programs (Linux 4.13)")
	}
	return id, nil
}

// uplink finds the device that a program is to be attached to: one with
// Ethernet headers, which the programs count on.
func uplink(h *netlink.Handle, name string) (netlink.Link, error) {
	links, err := portLinks(h, []string{name})
	if err != nil {
		return nil, err
	}
	if kind := links[0].Attrs().EncapType; kind != "ether" {
		return nil, fmt.Errorf("uplink %s: frames are of type %s; an Ethernet device is needed", name, kind)
	}
	return links[0], nil
}
