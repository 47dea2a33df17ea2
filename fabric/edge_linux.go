package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb edge bpf/edge.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

// errNoEBPF means that the kernel cannot run the program.
var errNoEBPF = errors.New("the kernel has no tc eBPF as of Linux 5.15")

// edgeHost has the addresses from which a host may send, as the program stores
// them: its own and its embedded stack's.
type edgeHost [2][4]byte

// syncEdge attaches the program to all ports of a switch where labels end, or where hosts
// send them. From other switches it removes it. Program and counters outlive the process,
// as with decapsulation.
func syncEdge(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	if len(p.SIDs)+len(p.Gate) == 0 {
		return kernel.EdgeFilter.DetachAll(h, ports)
	}
	spec, err := loadEdge()
	if err != nil {
		return 0, err
	}
	prog, have, err := kernel.EdgeFilter.Find(h, ports, spec.Programs[edgeProgWeftEdge])
	if err != nil {
		return 0, err
	}
	if prog == nil {
		var o struct {
			Prog *ebpf.Program `ebpf:"weft_edge"`
		}
		if err := kernel.Load(spec, &o, kernel.TCNeeds); err != nil {
			if !kernel.NotTheKernels(err) {
				err = fmt.Errorf("%w: %w", errNoEBPF, err)
			}
			return 0, err
		}
		prog = o.Prog
		changed++
	}
	defer prog.Close()
	n, err := syncHosts(prog, p.Gate, portIndexes(ports))
	changed += n
	if err != nil {
		return changed, fmt.Errorf("addresses of hosts: %w", err)
	}
	n, err = kernel.EdgeFilter.AttachAll(h, ports, prog, have)
	return changed + n, err
}

// syncHosts makes the program's table of hosts the planned one.
func syncHosts(prog *ebpf.Program, gate []GatePort, index map[string]int) (changed int, err error) {
	m, err := kernel.ProgramMap(prog, edgeMapHosts)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	want, err := edgeEntries(gate, index)
	if err != nil {
		return 0, err
	}
	return kernel.SyncMap(m, want)
}

// edgeEntries are the hosts of a gate as the program has them.
func edgeEntries(gate []GatePort, index map[string]int) (map[uint32]edgeHost, error) {
	want := make(map[uint32]edgeHost, len(gate))
	for _, g := range gate {
		i, ok := index[g.Port]
		if !ok || len(g.Sources) != len(edgeHost{}) {
			return nil, fmt.Errorf("gate of port %s: must be one of the node's, with the addresses of a host and of its embedded stack", g.Port)
		}
		want[uint32(i)] = edgeHost{g.Sources[0].As4(), g.Sources[1].As4()}
	}
	return want, nil
}

// attachEdge is syncEdge as a step of Apply: without eBPF packets are still
// forwarded, but unwatched.
func (r *Report) attachEdge(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	changed, err = syncEdge(h, ports, p)
	if errors.Is(err, errNoEBPF) {
		r.Notes = append(r.Notes, "this kernel has no tc eBPF as of Linux 5.15: hosts can forge packets with labels, and the switches' congestion marks on these are lost")
		return changed, nil
	}
	return changed, err
}
