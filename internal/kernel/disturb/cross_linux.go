package disturb

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// Crossed is two devices whose cables are swapped.
type Crossed struct{ links []link.Link }

// Cross swaps the cables of two devices of the calling thread's namespace, until Close: what
// leaves by one goes by the other's cable, and what comes by the other's cable comes in by it.
// far are the hardware addresses at the far ends of their cables, in the devices' order, as
// frames have them that the two ends send.
func Cross(devices [2]string, far [2]net.HardwareAddr) (c *Crossed, err error) {
	c = &Crossed{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("swap the cables of %s and %s: %w", devices[0], devices[1], err), c.Close())
			c = nil
		}
	}()
	var dev [2]*net.Interface
	for i, name := range devices {
		if dev[i], err = net.InterfaceByName(name); err != nil {
			return c, err
		}
	}
	for i := range dev {
		other := dev[1-i]
		for _, at := range []struct {
			hook  ebpf.AttachType
			to    net.HardwareAddr
			flags int32
		}{{ebpf.AttachTCXEgress, far[1-i], 0}, {ebpf.AttachTCXIngress, other.HardwareAddr, redirectIngress}} {
			if err := c.attach(dev[i].Index, at.hook, crossing(other.Index, at.to, at.flags)); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (c *Crossed) attach(device int, hook ebpf.AttachType, p asm.Instructions) error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "cross", Type: ebpf.SchedCLS, License: "GPL", Instructions: p})
	if err != nil {
		return err
	}
	defer prog.Close() // the link keeps it
	l, err := link.AttachTCX(link.TCXOptions{Interface: device, Program: prog, Attach: hook, Anchor: link.Head()})
	if err == nil {
		c.links = append(c.links, l)
	}
	return err
}

// Close swaps the cables back.
func (c *Crossed) Close() (err error) {
	for _, l := range c.links {
		err = errors.Join(err, l.Close())
	}
	c.links = nil
	return err
}

const redirectIngress = 1 // BPF_F_INGRESS

// crossing gives a frame another destination, and another device. What has been there already
// has crossed, and passes. A frame to a group keeps its destination.
func crossing(device int, to net.HardwareAddr, flags int32) asm.Instructions {
	const mark, data = 8, -8 // of struct __sk_buff; on the stack
	p := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, mark, asm.Word), asm.JEq.Imm(asm.R2, crossMark, "crossed"),
		asm.Mov.Imm(asm.R2, crossMark), asm.StoreMem(asm.R6, mark, asm.R2, asm.Word),
		asm.LoadAbs(0, asm.Byte), asm.And.Imm(asm.R0, 1), asm.JNE.Imm(asm.R0, 0, "go"),
	}
	for i, b := range to {
		p = append(p, asm.StoreImm(asm.RFP, int16(data+i), int64(b), asm.Byte))
	}
	return append(p,
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, data),
		asm.Mov.Imm(asm.R4, int32(len(to))), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call(),
		asm.Mov.Imm(asm.R1, int32(device)).WithSymbol("go"), asm.Mov.Imm(asm.R2, flags), asm.FnRedirect.Call(), asm.Return(),
		asm.Mov.Imm(asm.R2, 0).WithSymbol("crossed"), asm.StoreMem(asm.R6, mark, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, tcxNext), asm.Return(),
	)
}

// crossMark marks a frame that has crossed.
const crossMark = 0x5743 << 16
