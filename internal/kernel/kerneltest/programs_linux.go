package kerneltest

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// ForeignProgram loads a tc program as others have it, which returns one verdict.
func ForeignProgram(t *testing.T, name string, verdict int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// ProgramName is the name of a program in the kernel.
func ProgramName(t *testing.T, id ebpf.ProgramID) string {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.Name
}

// Verdicts that end a chain of programs, and that do not.
const (
	TCXEnd  = 0  // TC_ACT_OK
	TCXNext = -1 // TCX_NEXT
)

// AttachForeign attaches a program by TCX.
func AttachForeign(t *testing.T, port netlink.Link, at ebpf.AttachType, prog *ebpf.Program, anchor link.Anchor) {
	t.Helper()
	o := link.RawAttachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: at, Anchor: anchor}
	if err := link.RawAttachProgram(o); err != nil {
		t.Error(err)
	}
}

// DetachForeign removes it.
func DetachForeign(port netlink.Link, at ebpf.AttachType, prog *ebpf.Program) error {
	return link.RawDetachProgram(link.RawDetachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: at})
}
