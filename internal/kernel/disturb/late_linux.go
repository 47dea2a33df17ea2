package disturb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

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
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(protocol), Ifindex: index}))
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
