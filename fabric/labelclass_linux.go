package fabric

import (
	"encoding/binary"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/topology"
)

// classify is the program. It gives an IPv6 packet the priority that Linux derives from the
// TOS of IPv4 when it forwards (rt_tos2priority), but not from the class of IPv6.
// Without it, probes of paths wait in a full queue as data does, and congestion is taken
// for failure.
func classify() (*ebpf.ProgramSpec, error) {
	const (
		skbPriority = 32 // offset in struct __sk_buff
		etherType   = 12
		ip6Class    = kernel.EthernetHeader // half a byte of version before it
	)
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // where LoadAbs expects the packet
		asm.LoadAbs(etherType, asm.Half),
		asm.JNE.Imm(asm.R0, unix.ETH_P_IPV6, "pass"),
		asm.LoadAbs(ip6Class, asm.Half),
		// The two bits of the TOS that count, 0x18, as 0 to 3; the priorities are 0,
		// 2 (bulk), 6 (interactive), 4 (both).
		asm.RSh.Imm(asm.R0, 4+3),
		asm.And.Imm(asm.R0, 3),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.RSh.Imm(asm.R1, 1),
		asm.Xor.Reg(asm.R0, asm.R1),
		asm.LSh.Imm(asm.R0, 1),
		asm.StoreMem(asm.R6, skbPriority, asm.R0, asm.Word),
		asm.Mov.Imm(asm.R0, kernel.TCUnspec).WithSymbol("pass"),
		asm.Return(),
	}
	// That resolves the jumps, whatever the byte order, without which it is not known again in the kernel.
	err := code.Marshal(io.Discard, binary.LittleEndian)
	return &ebpf.ProgramSpec{Name: "weft_class", Type: ebpf.SchedCLS, Instructions: code}, err
}

// attachClasses attaches the program to the ports of a switch that forwards IPv6, and removes
// it from those of other switches. Without eBPF packets are still forwarded.
func (r *Report) attachClasses(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	if len(p.SIDs) == 0 && (!p.has6() || p.Layer == topology.LayerHost.String()) {
		return kernel.ClassFilter.DetachAll(h, ports)
	}
	spec, err := classify()
	if err != nil {
		return 0, err
	}
	prog, have, err := kernel.ClassFilter.Find(h, ports, spec)
	if err != nil {
		return 0, err
	}
	if prog == nil {
		var o struct {
			Prog *ebpf.Program `ebpf:"weft_class"`
		}
		err := kernel.Load(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}}, &o, kernel.TCNeeds)
		if err != nil && !kernel.NotTheKernels(err) {
			r.Notes = append(r.Notes, "this kernel has no tc eBPF as of Linux 5.15: IPv6 packets are of one class, and probes wait behind data")
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		prog = o.Prog
		changed++
	}
	defer prog.Close()
	n, err := kernel.ClassFilter.AttachAll(h, ports, prog, have)
	return changed + n, err
}
