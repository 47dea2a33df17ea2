package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb decap bpf/decap.c -- -O2 -g -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// The ways to decapsulate IP-in-IP at a bouncing switch.
const (
	DecapIPIP = "ipip" // the kernel's tunnel device
	DecapEBPF = "ebpf" // a program at tc ingress of every port
)

// attachDecap makes every port decapsulate what is addressed to one of the
// addresses, and mark it unless its mark is 0.
// The filters keep program and counters alive after the process has gone; a
// node that has them already keeps its counters.
func attachDecap(h *netlink.Handle, ports []netlink.Link, marks map[netip.Addr]uint32) (changed int, err error) {
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
	n, err := syncBouncing(prog, marks)
	if err != nil {
		return 0, fmt.Errorf("bouncing addresses: %w", err)
	}
	changed += n
	for _, port := range ports {
		if have[port.Attrs().Index] {
			continue
		}
		if err := decapFilter.attach(h, port, prog); err != nil {
			return changed, fmt.Errorf("port %s: %w", port.Attrs().Name, err)
		}
		changed++
	}
	return changed, nil
}

func loadProgram(spec *ebpf.CollectionSpec) (*ebpf.Program, error) {
	var o struct {
		Prog *ebpf.Program `ebpf:"weft_decap"`
	}
	err := loadObjects(spec, &o, "eBPF: the kernel has neither the module ipip nor tc eBPF as of Linux 6.3")
	return o.Prog, err
}

// findDecap returns the program that is attached already, or nil, and the
// indexes of the ports that have it. One of another version counts as absent.
func findDecap(h *netlink.Handle, ports []netlink.Link, spec *ebpf.CollectionSpec) (*ebpf.Program, map[int]bool, error) {
	have := make(map[int]bool)
	var first ebpf.ProgramID
	for _, port := range ports {
		id, err := decapFilter.program(h, port)
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
	if spec.Programs[decapProgWeftDecap].Compatible(info) != nil {
		prog.Close()
		return nil, map[int]bool{}, nil
	}
	return prog, have, nil
}

func syncBouncing(prog *ebpf.Program, marks map[netip.Addr]uint32) (changed int, err error) {
	m, err := programMap(prog, decapMapBouncing)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	want := make(map[[4]byte]uint32)
	for a, mark := range marks {
		want[a.As4()] = mark
	}
	var key [4]byte
	var value uint32
	var stale [][4]byte
	for it := m.Iterate(); it.Next(&key, &value); {
		mark, ok := want[key]
		if !ok {
			stale = append(stale, key)
		} else if mark == value {
			delete(want, key)
		}
	}
	for _, key := range stale {
		if err := m.Delete(key); err != nil {
			return 0, err
		}
	}
	for key, mark := range want {
		if err := m.Put(key, mark); err != nil {
			return 0, err
		}
	}
	return len(stale) + len(want), nil
}
