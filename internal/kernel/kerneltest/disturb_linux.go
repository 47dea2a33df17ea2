package kerneltest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Disturbance is what happens to IPv4 packets of some size that leave by a device. A
// super-segment counts as one. netem does the same in kernels that have it, but for Longest.
type Disturbance struct {
	Loss    int           // one in so many is lost; 0: none
	Double  int           // one in so many comes twice; 0: none
	Longest int           // longer ones are lost, bytes with the IP header; 0: none
	Skew    time.Duration // all arrive so much later
	Short   bool          // short ones are disturbed, too: probes and acknowledgements
}

// Disturbed counts the packets.
type Disturbed struct {
	Lost, Doubled, Long, Late uint64
	Latest                    time.Duration // that one was delayed, at most: a busy machine does more than it is told
}

// Disturber disturbs one device.
type Disturber struct {
	counts *ebpf.Map
	late   *lateness // nil: none
}

// disturbMark marks packets that have been disturbed enough. The switches' own bits are others.
const disturbMark = 0x5744 << 16

// leastDisturbed is the length of a frame that is disturbed, bytes, without
// Disturbance.Short: others are probes and acknowledgements.
const leastDisturbed = 200

// Disturb disturbs what leaves by a device of a namespace, by a TCX program behind others,
// until the test ends. Late packets pass through this process.
func Disturb(t testing.TB, in func(func() error) error, device string, d Disturbance) *Disturber {
	t.Helper()
	o := &Disturber{}
	err := in(func() error { return o.attach(t, device, d) })
	if err != nil {
		t.Fatalf("disturb %s: %v", device, err)
	}
	return o
}

func (o *Disturber) attach(t testing.TB, device string, d Disturbance) (err error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	o.counts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "disturbed", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 4})
	if err != nil {
		return err
	}
	t.Cleanup(func() { o.counts.Close() })
	aside := 0
	if d.Skew > 0 {
		if o.late, aside, err = delay(dev, d.Skew); err != nil {
			return err
		}
		t.Cleanup(o.late.close)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "disturb", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: d.program(o.counts, aside)})
	if err != nil {
		return err
	}
	t.Cleanup(func() { prog.Close() })
	l, err := netlink.LinkByIndex(dev.Index)
	if err != nil {
		return err
	}
	return attachTail(l, prog)
}

// Counts returns what has been disturbed.
func (o *Disturber) Counts() (c Disturbed, err error) {
	for i, n := range []*uint64{&c.Lost, &c.Doubled, &c.Long, &c.Late} {
		err = errors.Join(err, o.counts.Lookup(uint32(i), n))
	}
	if o.late != nil {
		c.Latest = time.Duration(o.late.most.Load())
	}
	return c, err
}

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
		asm.LoadMem(asm.R2, asm.R6, protocol, asm.Word), asm.JNE.Imm(asm.R2, int32(Htons(unix.ETH_P_IP)), "pass"),
		asm.LoadMem(asm.R7, asm.R6, length, asm.Word),
	}
	if !d.Short {
		p = append(p, asm.JLT.Imm(asm.R7, leastDisturbed, "pass"))
	}
	if d.Longest > 0 {
		p = append(p, asm.JLE.Imm(asm.R7, int32(d.Longest+kernel.EthernetHeader), "short"))
		p = append(append(p, lose(2)...), asm.Mov.Imm(asm.R0, 0).WithSymbol("short"))
	}
	if d.Loss > 0 {
		p = append(append(p, oneIn(d.Loss, "kept")...), lose(0)...)
		p = append(p, asm.Mov.Imm(asm.R0, 0).WithSymbol("kept"))
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
	return append(p, asm.Mov.Imm(asm.R0, TCXNext).WithSymbol("pass"), asm.Return())
}

// lateness holds packets for a while. They come by a cable of its own and leave by the device.
type lateness struct {
	cable netlink.Link
	home  *netlink.Handle
	skew  time.Duration
	in    int // packet sockets
	out   int
	stop  atomic.Bool
	ended chan struct{}
	most  atomic.Int64
}

type latePacket struct {
	frame []byte // behind a virtio header
	due   time.Time
}

// delay makes one for a device, and returns the device that leads to it.
func delay(dev *net.Interface, skew time.Duration) (l *lateness, aside int, err error) {
	l = &lateness{skew: skew, in: -1, out: -1, ended: make(chan struct{})}
	if l.home, err = netlink.NewHandle(); err != nil {
		return nil, 0, err
	}
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.PeerName = fmt.Sprintf("late%d", dev.Index), fmt.Sprintf("late%dx", dev.Index)
	if err = netlink.LinkAdd(veth); err == nil {
		l.cable = veth
		err = l.open(dev, veth)
	}
	if err != nil {
		l.free()
		return nil, 0, err
	}
	go l.run()
	return l, veth.Attrs().Index, nil
}

func (l *lateness) open(dev *net.Interface, veth *netlink.Veth) (err error) {
	var index [2]int
	for i, name := range []string{veth.Name, veth.PeerName} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if _, err := kernel.SetSupers(name, kernel.MaxLongSuper); err != nil && link.Attrs().GSOIPv4MaxSize != 0 {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		index[i] = link.Attrs().Index
	}
	veth.Index = index[0]
	if l.in, err = lateSocket(index[1], unix.ETH_P_ALL, unix.SO_RCVBUFFORCE); err != nil {
		return err
	}
	l.out, err = lateSocket(dev.Index, 0, unix.SO_SNDBUFFORCE)
	return err
}

// lateSocket opens a packet socket with virtio headers.
func lateSocket(index int, protocol uint16, buffer int) (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, disturbMark),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, buffer, 64<<20),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: Htons(protocol), Ifindex: index}))
	return fd, err
}

// run reads packets, and writes them when they are due. It has a thread of its own, with a
// priority of its own where that is allowed, so that a busy machine makes them little later.
func (l *lateness) run() {
	defer close(l.ended)
	runtime.LockOSThread() // which ends with it
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	const header, longestQueue = 10, 1 << 14
	b := make([]byte, kernel.MaxLongSuper+1<<10)
	var queue []latePacket
	for !l.stop.Load() {
		wait := 50 * time.Millisecond
		if len(queue) > 0 {
			wait = max(0, time.Until(queue[0].due))
		}
		timeout := unix.NsecToTimespec(int64(wait))
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(l.in), Events: unix.POLLIN}}, &timeout, nil)
		for len(queue) < longestQueue {
			n, err := unix.Read(l.in, b)
			if err != nil {
				break
			}
			if n >= header+kernel.EthernetHeader && binary.BigEndian.Uint16(b[header+12:]) == unix.ETH_P_IP {
				queue = append(queue, latePacket{slices.Clone(b[:n]), time.Now().Add(l.skew)})
			}
		}
		for len(queue) > 0 && time.Until(queue[0].due) <= 0 {
			l.most.Store(max(l.most.Load(), int64(l.skew+time.Since(queue[0].due))))
			_, _ = unix.Write(l.out, queue[0].frame) // a packet that is refused is lost
			queue[0].frame, queue = nil, queue[1:]
		}
	}
}

func (l *lateness) close() {
	l.stop.Store(true)
	<-l.ended
	l.free()
}

func (l *lateness) free() {
	for _, fd := range []int{l.in, l.out} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if l.cable != nil {
		_ = l.home.LinkDel(l.cable) // or the namespace has gone
	}
	l.home.Close()
}
