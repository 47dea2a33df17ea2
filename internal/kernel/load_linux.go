package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Load puts programs and maps of a specification into the kernel. needs says
// which kernel they require, for errors.
func Load(spec *ebpf.CollectionSpec, objects any, needs string) error {
	return LoadOver(spec, objects, nil, needs)
}

// LoadOver is Load with maps that are in the kernel already, by their names.
func LoadOver(spec *ebpf.CollectionSpec, objects any, maps map[string]*ebpf.Map, needs string) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return Explain(fmt.Errorf("memory limit for eBPF: %w", err))
	}
	err := spec.LoadAndAssign(objects, &ebpf.CollectionOptions{MapReplacements: maps})
	if err != nil && !NotTheKernels(err) {
		// To explain a failure the library tries what the kernel can do, and takes a
		// lack of descriptors for a lack of that.
		if lack := tryDescriptors(len(spec.Maps) + len(spec.Programs) + loadSpare); lack != nil {
			err = fmt.Errorf("load programs and maps: %w", lack)
		}
	}
	if NotTheKernels(err) {
		return Explain(fmt.Errorf("eBPF: %w", err))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", needs, err)
	}
	return nil
}

// loadSpare is how many descriptors loading takes besides the objects' own: for types, and
// for files opened meanwhile.
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

// TCNeeds is what most programs require.
const TCNeeds = "eBPF: tc programs as of Linux 5.15 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// programID returns the number by which a chain of programs knows one.
func programID(prog *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := prog.Info()
	if err != nil {
		return 0, Explain(err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("eBPF: the kernel does not number its programs (Linux 4.13)")
	}
	return id, nil
}

// Uplink finds the device that a program is to be attached to: one with
// Ethernet headers, which the programs count on.
func Uplink(h *netlink.Handle, name string) (netlink.Link, error) {
	links, err := Links(h, []string{name})
	if err != nil {
		return nil, err
	}
	if kind := links[0].Attrs().EncapType; kind != "ether" {
		return nil, fmt.Errorf("uplink %s: frames are of type %s; an Ethernet device is needed", name, kind)
	}
	return links[0], nil
}
