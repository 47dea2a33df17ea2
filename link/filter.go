package link

import "golang.org/x/net/bpf"

// wholePacket is what a filter returns to take all of a packet.
const wholePacket = 0x40000

// prelude comes before every filter. It passes only packets that can be for this host on
// this link: IP without a VLAN tag, sent to this host's MAC address alone. (A tag that
// the kernel has already removed means another interface.) So packets that go out, and
// packets that a promiscuous interface overhears, do not pass.
var prelude = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 5},
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0 /* PACKET_HOST */, SkipTrue: 3},
	bpf.LoadExtension{Num: bpf.ExtProto},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x0800, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x86dd, SkipTrue: 1},
	bpf.RetConstant{Val: 0},
}

// program returns the prelude and what follows it. Jumps in a classic program
// are relative, so the caller's need no change.
func program(filter []bpf.RawInstruction) ([]bpf.RawInstruction, error) {
	p, err := bpf.Assemble(prelude)
	if err != nil {
		return nil, err
	}
	if len(filter) == 0 {
		all, err := bpf.RetConstant{Val: wholePacket}.Assemble()
		return append(p, all), err
	}
	return append(p, filter...), nil
}
