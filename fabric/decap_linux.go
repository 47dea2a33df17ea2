package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb decap bpf/decap.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// The ways to decapsulate IP-in-IP at a bouncing switch.
const (
	DecapIPIP = "ipip" // the kernel's tunnel devices
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
	prog, have, err := kernel.DecapFilter.Find(h, ports, spec.Programs[decapProgWeftDecap])
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
	n, err = kernel.DecapFilter.AttachAll(h, ports, prog, have)
	return changed + n, err
}

func loadProgram(spec *ebpf.CollectionSpec) (*ebpf.Program, error) {
	var o struct {
		Prog *ebpf.Program `ebpf:"weft_decap"`
	}
	err := kernel.Load(spec, &o, "eBPF: the kernel has neither the module ipip nor tc eBPF as of Linux 6.3")
	return o.Prog, err
}

func syncBouncing(prog *ebpf.Program, marks map[netip.Addr]uint32) (changed int, err error) {
	m, err := kernel.ProgramMap(prog, decapMapBouncing)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return kernel.SyncMap(m, bouncingEntries(marks))
}

// bouncingEntries are marks as the program has them: by address, that of IPv4 mapped into
// IPv6.
func bouncingEntries(marks map[netip.Addr]uint32) map[[16]byte]uint32 {
	want := make(map[[16]byte]uint32, len(marks))
	for a, mark := range marks {
		want[a.As16()] = mark
	}
	return want
}
