package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
)

// HasTCX reports whether the kernel has TCX (Linux 6.6). link is any device of the calling
// thread's network namespace.
func HasTCX(link netlink.Link) (bool, error) {
	_, err := SprayFilter.chain(link)
	if errors.Is(err, errNoTCX) {
		return false, nil
	}
	return err == nil, err
}

// TryTC loads the least program for tc, and says why the kernel does not take it.
func TryTC() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "weft_try", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		return Explain(fmt.Errorf("eBPF: %w", err))
	}
	return prog.Close()
}

// ForeignAt lists other owners' programs and filters at a device where f is a place, and says
// whether weft's program is there. Without it none of them is in front of anything.
func (f Filter) ForeignAt(h *netlink.Handle, link netlink.Link) (all []ForeignProgram, there bool, err error) {
	a := Attachment{place: f, Link: link}
	if a.ID, err = f.Program(h, link); err != nil {
		return nil, false, err
	}
	there = a.ID != 0
	all, err = a.Foreign(h)
	for i := range all {
		all[i].Front = all[i].Front && there
	}
	return all, there, err
}
