package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb decap bpf/decap.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The ways to decapsulate IP-in-IP at a bouncing switch.
const (
	DecapIPIP = "ipip" // the kernel's tunnel device
	DecapEBPF = "ebpf" // a program at tc ingress of every port
)

// decapFilter names the tc filter, by which a later process finds it.
const decapFilter = "weft-decap"

// attachDecap makes every port decapsulate what is addressed to one of addrs.
// The filters keep program and counters alive after the process has gone; a
// node that has them already keeps its counters.
func attachDecap(h *netlink.Handle, ports []netlink.Link, addrs []netip.Addr) (changed int, err error) {
	spec, err := loadDecap()
	if err != nil {
		return 0, err
	}
	prog, have, err := findDecap(h, ports, spec)
	if err != nil {
		return 0, err
	}
	if prog == nil {
		prog, err = loadProgram(spec)
		if err != nil {
			return 0, err
		}
		changed++
	}
	defer prog.Close()
	n, err := syncBouncing(prog, addrs)
	if err != nil {
		return 0, fmt.Errorf("bouncing addresses: %w", err)
	}
	changed += n
	for _, port := range ports {
		if have[port.Attrs().Index] {
			continue
		}
		if err := attachFilter(h, port, prog); err != nil {
			return changed, fmt.Errorf("port %s: %w", port.Attrs().Name, err)
		}
		changed++
	}
	return changed, nil
}

func loadProgram(spec *ebpf.CollectionSpec) (*ebpf.Program, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, explain(fmt.Errorf("memory limit for eBPF: %w", err))
	}
	var o struct {
		Prog *ebpf.Program `ebpf:"weft_decap"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, explain(err)
		}
		return nil, fmt.Errorf("eBPF: the kernel has neither the module ipip nor tc eBPF as of Linux 6.3: %w", err)
	}
	return o.Prog, nil
}

// decapPriority is one that no other filter of a switch is likely to have, so
// that ours replaces none but ours.
const decapPriority = 0x5745

func attachFilter(h *netlink.Handle, port netlink.Link, prog *ebpf.Program) error {
	index := port.Attrs().Index
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := h.QdiscAdd(clsact); err != nil && !errors.Is(err, unix.EEXIST) {
		return explain(fmt.Errorf("clsact qdisc (kernel option NET_CLS_ACT): %w", err))
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS,
			Handle: 1, Protocol: unix.ETH_P_ALL, Priority: decapPriority},
		Fd: prog.FD(), Name: decapFilter, DirectAction: true}
	if err := h.FilterReplace(filter); err != nil {
		return explain(fmt.Errorf("tc filter (kernel option NET_CLS_BPF): %w", err))
	}
	return nil
}

// findDecap returns the program that is attached already, or nil, and the
// indexes of the ports that have it. One of another version counts as absent.
func findDecap(h *netlink.Handle, ports []netlink.Link, spec *ebpf.CollectionSpec) (*ebpf.Program, map[int]bool, error) {
	have := make(map[int]bool)
	first := 0
	for _, port := range ports {
		id, err := decapProgram(h, port)
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
	prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(first))
	if err != nil {
		return nil, nil, explain(fmt.Errorf("eBPF program %d: %w", first, err))
	}
	info, err := prog.Info()
	if err != nil {
		prog.Close()
		return nil, nil, err
	}
	if spec.Programs[decapProgWeftDecap].Compatible(info) != nil {
		prog.Close()
		return nil, map[int]bool{}, nil
	}
	return prog, have, nil
}

// decapProgram returns the ID of the decapsulator at a port, 0 if none.
func decapProgram(h *netlink.Handle, port netlink.Link) (int, error) {
	filters, err := h.FilterList(port, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return 0, fmt.Errorf("tc filters of %s: %w", port.Attrs().Name, err)
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok && bpf.Name == decapFilter {
			return bpf.Id, nil
		}
	}
	return 0, nil
}

// programMap returns one of the maps that a loaded program uses.
func programMap(prog *ebpf.Program, name string) (*ebpf.Map, error) {
	info, err := prog.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, explain(err)
		}
		if mi, err := m.Info(); err == nil && mi.Name == name {
			return m, nil
		}
		m.Close()
	}
	return nil, fmt.Errorf("eBPF program %s has no map %s", info.Name, name)
}

func syncBouncing(prog *ebpf.Program, addrs []netip.Addr) (changed int, err error) {
	m, err := programMap(prog, decapMapBouncing)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	want := make(map[[4]byte]bool)
	for _, a := range addrs {
		want[a.As4()] = true
	}
	var key [4]byte
	var value uint8
	var stale [][4]byte
	for it := m.Iterate(); it.Next(&key, &value); {
		if !want[key] {
			stale = append(stale, key)
		}
		delete(want, key)
	}
	for _, key := range stale {
		if err := m.Delete(key); err != nil {
			return 0, err
		}
	}
	for key := range want {
		if err := m.Put(key, uint8(1)); err != nil {
			return 0, err
		}
	}
	return len(stale) + len(want), nil
}
