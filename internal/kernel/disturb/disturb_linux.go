package disturb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

const tcxNext = -1 // TCX_NEXT

func htons(v uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)) }

// Disturbance is what happens to IPv4 packets of some size that leave by a device. A
// super-segment counts as one. netem does the same in kernels that have it, but for Longest.
type Disturbance struct {
	Loss    int           // one in so many is lost; 0: none
	Double  int           // one in so many comes twice; 0: none
	Longest int           // longer ones are lost, bytes with the IP header; 0: none
	Skew    time.Duration // all arrive so much later
	Short   bool          // short ones are disturbed, too: probes and acknowledgements
	Flip    int           // of one in so many a bit is wrong, which no checksum knows; 0: none
	// Protocol is that of the IP header of those that are disturbed; 0: of all.
	Protocol int
	// First has the program run in front of others, not behind them.
	First bool
}

// Disturbed counts the packets.
type Disturbed struct {
	Lost, Doubled, Long, Late, Flipped uint64
	Latest                             time.Duration // that one was delayed, at most: a busy machine does more than it is told
}

// Disturber disturbs one device. Its methods are safe for concurrent use, but for Close.
type Disturber struct {
	counts   *ebpf.Map
	late     *lateness // nil: none
	attached link.Link // nil: not yet
}

// disturbMark marks packets that have been disturbed enough. The switches' own bits are others.
const disturbMark = 0x5744 << 16

// leastDisturbed is the length of a frame that is disturbed, bytes, without
// Disturbance.Short: others are probes and acknowledgements.
const leastDisturbed = 200

// Attach disturbs what leaves by a device of the calling thread's namespace, by a TCX program
// behind others, until Close. Late packets pass through this process.
func Attach(device string, d Disturbance) (o *Disturber, err error) {
	o = &Disturber{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("disturb %s: %w", device, err), o.Close())
			o = nil
		}
	}()
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return o, err
	}
	o.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "disturbed", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 5})
	if err != nil {
		return o, err
	}
	aside := 0
	if d.Skew > 0 {
		if o.late, aside, err = delay(dev, d.Skew); err != nil {
			return o, err
		}
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "disturb", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: d.program(o.counts, aside)})
	if err != nil {
		return o, err
	}
	defer prog.Close() // the link keeps it
	at := link.TCXOptions{Interface: dev.Index, Program: prog, Attach: ebpf.AttachTCXEgress}
	if d.First {
		at.Anchor = link.Head()
	}
	o.attached, err = link.AttachTCX(at)
	return o, err
}

// Close ends the disturbance. Any thread may call it.
func (o *Disturber) Close() (err error) {
	if o.attached != nil { // first: without its cable the program loses what it is given
		err = o.attached.Close()
	}
	if o.late != nil {
		o.late.close()
	}
	if o.counts != nil {
		err = errors.Join(err, o.counts.Close())
	}
	return err
}

// Counts returns what has been disturbed.
func (o *Disturber) Counts() (c Disturbed, err error) {
	for i, n := range []*uint64{&c.Lost, &c.Doubled, &c.Long, &c.Late, &c.Flipped} {
		err = errors.Join(err, o.counts.Lookup(uint32(i), n))
	}
	if o.late != nil {
		c.Latest = time.Duration(o.late.most.Load())
	}
	return c, err
}

// flip turns the lowest bit of a packet's last byte.
func flip() asm.Instructions {
	const at = -8
	where := asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, asm.R7), asm.Sub.Imm(asm.R2, 1)}
	byteAt := asm.Instructions{asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, at), asm.Mov.Imm(asm.R4, 1)}
	p := append(slices.Concat(where, byteAt), asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "flipped"),
		asm.LoadMem(asm.R8, asm.RFP, at, asm.Byte), asm.Xor.Imm(asm.R8, 1), asm.StoreMem(asm.RFP, at, asm.R8, asm.Byte))
	where = slices.Clone(where)
	p = append(p, where...)
	p = append(p, asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, at), asm.Mov.Imm(asm.R4, 1), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call())
	return append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("flipped"))
}

// ipProtocol is where a frame says what is in its packet.
const ipProtocol = kernel.EthernetHeader + 9

// program is the program; aside is the device by which late packets go.
func (d Disturbance) program(counts *ebpf.Map, aside int) asm.Instructions {
	const length, mark, protocol, ifindex = 0, 8, 16, 40 // of struct __sk_buff
	labels := 0
	count := func(what int32) asm.Instructions {
		labels++
		done := fmt.Sprintf("counted%d", labels)
		return asm.Instructions{
			asm.Mov.Imm(asm.R2, what), asm.StoreMem(asm.RFP, -4, asm.R2, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, counts.FD()), asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, done),
			asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(done),
		}
	}
	oneIn := func(n int, unless string) asm.Instructions {
		return asm.Instructions{asm.FnGetPrandomU32.Call(), asm.Mod.Imm32(asm.R0, int32(n)), asm.JNE.Imm(asm.R0, 0, unless)}
	}
	lose := func(what int32) asm.Instructions {
		return append(count(what), asm.Mov.Imm(asm.R0, 2), asm.Return()) // TC_ACT_SHOT
	}
	p := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, mark, asm.Word), asm.JEq.Imm(asm.R2, disturbMark, "pass"),
		asm.LoadMem(asm.R2, asm.R6, protocol, asm.Word), asm.JNE.Imm(asm.R2, int32(htons(unix.ETH_P_IP)), "pass"),
		asm.LoadMem(asm.R7, asm.R6, length, asm.Word),
	}
	if !d.Short {
		p = append(p, asm.JLT.Imm(asm.R7, leastDisturbed, "pass"))
	}
	if d.Protocol > 0 {
		p = append(p, asm.LoadAbs(ipProtocol, asm.Byte), asm.JNE.Imm(asm.R0, int32(d.Protocol), "pass"))
	}
	if d.Longest > 0 {
		p = append(p, asm.JLE.Imm(asm.R7, int32(d.Longest+kernel.EthernetHeader), "short"))
		p = append(append(p, lose(2)...), asm.Mov.Imm(asm.R0, 0).WithSymbol("short"))
	}
	if d.Loss > 0 {
		p = append(append(p, oneIn(d.Loss, "kept")...), lose(0)...)
		p = append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("kept"))
	}
	if d.Flip > 0 {
		p = append(p, oneIn(d.Flip, "right")...)
		p = append(p, flip()...)
		p = append(append(p, count(4)...), asm.Mov.Imm(asm.R0, 0).WithSymbol("right"))
	}
	if d.Double > 0 {
		p = append(p, oneIn(d.Double, "single")...)
		p = append(p, asm.LoadMem(asm.R8, asm.R6, mark, asm.Word),
			asm.Mov.Imm(asm.R2, disturbMark), asm.StoreMem(asm.R6, mark, asm.R2, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMem(asm.R2, asm.R6, ifindex, asm.Word), asm.Mov.Imm(asm.R3, 0), asm.FnCloneRedirect.Call(),
			asm.StoreMem(asm.R6, mark, asm.R8, asm.Word))
		p = append(append(p, count(1)...), asm.Mov.Imm(asm.R0, 0).WithSymbol("single"))
	}
	if d.Skew > 0 {
		p = append(p, count(3)...)
		p = append(p, asm.Mov.Imm(asm.R1, int32(aside)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return())
	}
	return append(p, asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("pass"), asm.Return())
}
