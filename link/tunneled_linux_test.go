package link

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestPacket_afterDecapsulation receives super-segments as a bouncing switch of
// the fabric leaves them: a program has put on an outer header and taken it off
// again, and the kernel's buffer is still marked as IP-in-IP (SKB_GSO_IPXIP4).
// A virtio header knows no such mark, and must say TCP.
func TestPacket_afterDecapsulation(t *testing.T) {
	c := newCable(t)
	wrapAndUnwrap(t, nearIndex)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{})
	f := flows(near4, far4, near6, far6)["TCP IPv4"]
	transfer(t, f, near, far, sizesTo(f.maxPayload()-20, f.mss, 101), 8, 3)
	if f.pieces == f.whole || f.whole < 100 {
		t.Errorf("%d super-segments of %d packets", f.whole, f.pieces)
	}
}

// wrapAndUnwrap attaches a program to the egress of an interface that puts 20 bytes behind
// the Ethernet header of every IPv4 packet, as an outer header, and takes them
// away.
func wrapAndUnwrap(t *testing.T, index int) {
	const (
		room      = 1      // BPF_ADJ_ROOM_MAC
		fixedGSO  = 1 << 0 // BPF_F_ADJ_ROOM_FIXED_GSO
		encapIPv4 = 1 << 1 // BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
		decapIPv4 = 1 << 7 // BPF_F_ADJ_ROOM_DECAP_L3_IPV4
		protocol  = 16     // offset in struct __sk_buff
		ethIPv4   = 0x0008 // in network order
	)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R0, asm.R6, protocol, asm.Word),
		asm.JNE.Imm(asm.R0, ethIPv4, "pass"),
		asm.Mov.Imm(asm.R2, 20),
		asm.Mov.Imm(asm.R3, room),
		asm.Mov.Imm(asm.R4, fixedGSO|encapIPv4),
		asm.FnSkbAdjustRoom.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, -20),
		asm.Mov.Imm(asm.R3, room),
		asm.Mov.Imm(asm.R4, fixedGSO|decapIPv4),
		asm.FnSkbAdjustRoom.Call(),
		asm.JNE.Imm(asm.R0, 0, "drop"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("pass"), // TC_ACT_OK
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("drop"), // TC_ACT_SHOT
		asm.Return(),
	}})
	if err != nil {
		t.Skipf("the kernel does not take the program: %v", err)
	}
	t.Cleanup(func() { prog.Close() })
	err = netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
	if err == nil {
		err = netlink.FilterAdd(&netlink.BpfFilter{
			FilterAttrs:  netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
			Fd:           prog.FD(),
			Name:         "wrap",
			DirectAction: true,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
