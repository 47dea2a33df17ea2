package fabric

import (
	"encoding/binary"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// suffixProgram returns a program that gives IPv4 packets the mark of their group: by the
// host ID, and for any other last byte as if it were one. It leaves the other bits of marks
// as they are.
func suffixProgram(groups []SuffixGroup) (*ebpf.ProgramSpec, error) {
	const (
		skbMark   = 8 // offset in struct __sk_buff
		etherType = 12
		lastByte  = kernel.EthernetHeader + 19 // of the destination
	)
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // where LoadAbs expects the packet
		asm.LoadAbs(etherType, asm.Half),
		asm.JNE.Imm(asm.R0, unix.ETH_P_IP, "pass"),
		asm.LoadAbs(lastByte, asm.Byte),
		asm.And.Imm(asm.R0, hostIDMask),
		asm.Add.Imm(asm.R0, int32(groupOffset(groups))),
		asm.Mod.Imm(asm.R0, int32(len(groups))),
		asm.Or.Imm(asm.R0, suffixBit),
		asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word),
		asm.And.Imm(asm.R1, ^int32(markMask)),
		asm.Or.Reg(asm.R0, asm.R1),
		asm.StoreMem(asm.R6, skbMark, asm.R0, asm.Word),
		asm.Mov.Imm(asm.R0, kernel.TCUnspec).WithSymbol("pass"),
		asm.Return(),
	}
	// That resolves the jumps, without which it is not known again in the kernel.
	err := code.Marshal(io.Discard, binary.LittleEndian)
	return &ebpf.ProgramSpec{Name: "weft_suffix", Type: ebpf.SchedCLS, Instructions: code}, err
}

// attachSuffixes attaches the program to all ports of a switch that has groups, and removes
// it from those of others. Without eBPF packets have no mark, and ECMP routes them.
func (r *Report) attachSuffixes(h *netlink.Handle, ports []netlink.Link, p NodePlan) (changed int, err error) {
	if len(p.Suffixes) == 0 {
		for _, place := range []kernel.Filter{kernel.ClassifyFilter, kernel.SuffixFilter} { // a classifier that has crashed leaves its program
			n, err := place.DetachAll(h, ports)
			if changed += n; err != nil {
				return changed, err
			}
		}
		return changed, nil
	}
	spec, err := suffixProgram(p.Suffixes)
	if err != nil {
		return 0, err
	}
	prog, have, err := kernel.SuffixFilter.Find(h, ports, spec)
	if err != nil {
		return 0, err
	}
	if prog == nil {
		var o struct {
			Prog *ebpf.Program `ebpf:"weft_suffix"`
		}
		err := kernel.Load(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{spec.Name: spec}}, &o, kernel.TCNeeds)
		if err != nil && !kernel.NotTheKernels(err) {
			r.Plain = "this kernel has no tc eBPF as of Linux 5.15: host IDs choose no table, and ECMP spreads"
			r.Notes = append(r.Notes, r.Plain+"; weft plan prints commands of nft that mark packets instead, and overwrite what else is in their marks")
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		prog = o.Prog
		changed++
	}
	defer prog.Close()
	n, err := kernel.SuffixFilter.AttachAll(h, ports, prog, have)
	return changed + n, err
}
