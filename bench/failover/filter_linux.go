package failover

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/topoupdate"
)

// snapBytes is how much of a packet is read: two IPv4 headers without options.
const snapBytes = 40

// maxBounces bounds a filter: a jump over more would not fit its 8 bits.
const maxBounces = 200

// holeFilter is a filter for a packet socket (SOCK_DGRAM: bytes begin at the IP
// header). It takes data to the given outer destinations that leaves the device.
func holeFilter(bounces []netip.Addr) ([]bpf.RawInstruction, error) {
	return bpf.Assemble(append([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	}, dataTo(bounces)...))
}

// dataTo takes data, which is neither probes nor updates, in IP-in-IP to the given outer destinations, as much of it
// as is looked at. Outer options are not known to weft, which has none.
func dataTo(bounces []netip.Addr) []bpf.Instruction {
	if len(bounces) == 0 || len(bounces) > maxBounces {
		return []bpf.Instruction{bpf.RetConstant{Val: 0}}
	}
	prog := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x45, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_IPIP, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: 16, Size: 4},
	}
	for i, a := range bounces {
		b := a.As4()
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(b[:]), SkipTrue: uint8(len(bounces) - i)})
	}
	return append(prog,
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: 20 + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipFalse: 4},
		// The inner header may have options: its length leads to the port.
		bpf.LoadMemShift{Off: 20},
		bpf.LoadIndirect{Off: 20 + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: encap.ProbePort, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: topoupdate.Port, SkipTrue: 1},
		bpf.RetConstant{Val: snapBytes},
		bpf.RetConstant{Val: 0},
	)
}
