package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/songgao/water"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
)

// opened is a TUN interface that has been created and not yet configured.
type opened struct {
	name     string
	files    []*os.File // one per queue, non-blocking
	writer   *os.File   // a queue that nothing is read from, see detach; nil with one queue
	vnet     bool       // packets are preceded by a VnetHeader
	offloads Offloads
}

func (o *opened) close() {
	for _, f := range o.files {
		f.Close()
	}
	if o.writer != nil {
		o.writer.Close()
	}
}

// total is how many queues are opened for so many to read from.
func total(queues int) int {
	if queues == 1 {
		return 1
	}
	return queues + 1
}

// detach makes the last of several queues one that is only written to. A write to any
// other queue moves the packet's flow there, in both directions (tun_flow_update in
// drivers/net/tun.c). Packets of the flow that wait in another queue could then be read
// after later ones, and all flows would end up in the queue that is written to. A write
// to a detached queue moves no flow, so a flow stays in the queue that its hash selects.
// It needs Linux 3.8.
func (o *opened) detach() error {
	if len(o.files) == 1 {
		return nil
	}
	last := len(o.files) - 1
	o.files, o.writer = o.files[:last], o.files[last]
	ifr, err := unix.NewIfreq(o.name)
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_DETACH_QUEUE)
	raw, err := o.writer.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = unix.IoctlIfreq(int(fd), unix.TUNSETQUEUE, ifr) })
	if err = errors.Join(err, refused); err != nil {
		return fmt.Errorf("detach the queue to write to: %w", err)
	}
	return nil
}

// opener creates an interface.
type opener func(TUNConfig) (*opened, error)

// openQueues uses fast if offloads are wanted, and water if they are not or the
// kernel refuses them.
func openQueues(c TUNConfig, fast opener) (*opened, error) {
	o, err := openOrFallBack(c, fast)
	if err != nil {
		return nil, err
	}
	if err = o.detach(); err == nil {
		err = o.alone()
	}
	if err != nil {
		o.close()
		return nil, openError(c.Name, err)
	}
	return o, nil
}

// alone returns EBUSY if another process has queues of the interface, too. With
// a single queue the kernel sees to that.
func (o *opened) alone() error {
	l, err := netlink.LinkByName(o.name)
	if t, ok := l.(*netlink.Tuntap); err == nil && ok && t.Queues > len(o.files) {
		return unix.EBUSY
	}
	return err
}

func openOrFallBack(c TUNConfig, fast opener) (*opened, error) {
	if !c.Offload {
		return openWater(c)
	}
	o, refused := fast(c)
	if refused == nil {
		return o, nil
	}
	// Netlink's errors do not keep their number, water's do: if it is not the
	// offload that is in the way, water says what is.
	o, err := openWater(c)
	if err == nil {
		o.offloads.Fallback = fmt.Sprintf("opened without offloads: %v", refused)
	}
	return o, err
}

// openNetlink opens an interface with a VnetHeader before every packet.
func openNetlink(c TUNConfig) (*opened, error) {
	o := &opened{name: c.Name, vnet: true, offloads: Offloads{Opener: "netlink", Queues: c.Queues}}
	for range total(c.Queues) {
		// One at a time: given no name and many queues, the library makes as many
		// interfaces.
		link := tuntap(o.name, c.Queues > 1)
		if err := netlink.LinkAdd(link); err != nil {
			o.close()
			return nil, err
		}
		o.name = link.Name
		o.files = append(o.files, link.Fds...)
		if err := o.setOffload(link.Fds[0]); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

func tuntap(name string, multi bool) *netlink.Tuntap {
	flags := netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR
	if multi {
		flags |= netlink.TUNTAP_MULTI_QUEUE
	}
	return &netlink.Tuntap{
		LinkAttrs:  netlink.LinkAttrs{Name: name},
		Mode:       netlink.TUNTAP_MODE_TUN,
		Flags:      flags,
		NonPersist: true,
		Queues:     1,
		Owner:      uint32(os.Geteuid()),
		Group:      uint32(os.Getegid()),
	}
}

// setOffload tells the kernel what it may hand over unfinished to the reader of
// a queue. What may be written does not depend on it.
func (o *opened) setOffload(queue *os.File) error {
	raw, err := queue.SyscallConn()
	if err != nil {
		return err
	}
	var got int
	var refused error
	err = raw.Control(func(fd uintptr) {
		got, refused = negotiate(func(flags int) error {
			return unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, flags)
		})
	})
	if err != nil {
		return err
	}
	o.offloads.Checksum = got&unix.TUN_F_CSUM != 0
	o.offloads.TSO4 = got&unix.TUN_F_TSO4 != 0
	o.offloads.TSO6 = got&unix.TUN_F_TSO6 != 0
	o.offloads.USO = got&unix.TUN_F_USO4 != 0
	if refused != nil {
		o.offloads.Fallback = fmt.Sprintf("the kernel refuses further offloads: %v", refused)
	}
	return nil
}

// offloadSteps are what a kernel may be asked for, the most first: UDP came with
// Linux 6.2.
var offloadSteps = []int{
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6,
	unix.TUN_F_CSUM | unix.TUN_F_TSO4,
	unix.TUN_F_CSUM,
}

// negotiate returns the most that set takes, and, if that is not everything, why
// more was refused.
func negotiate(set func(flags int) error) (got int, refused error) {
	for _, flags := range offloadSteps {
		err := set(flags)
		if err == nil {
			return flags, refused
		}
		refused = err
	}
	return 0, refused
}

// openWater opens an interface without offloads.
func openWater(c TUNConfig) (*opened, error) {
	o := &opened{name: c.Name, offloads: Offloads{Opener: "water", Queues: c.Queues}}
	for range total(c.Queues) {
		ifc, err := water.New(water.Config{
			DeviceType:             water.TUN,
			PlatformSpecificParams: water.PlatformSpecificParams{Name: o.name, MultiQueue: c.Queues > 1},
		})
		if err != nil {
			o.close()
			return nil, openError(c.Name, err)
		}
		file, ok := ifc.ReadWriteCloser.(*os.File)
		if !ok {
			ifc.Close()
			o.close()
			return nil, fmt.Errorf("tun: water gave a %T, wanted a file", ifc.ReadWriteCloser)
		}
		o.name = ifc.Name() // the further queues are of the same interface
		o.files = append(o.files, file)
	}
	return o, nil
}

// openError says what is missing when the kernel refuses a TUN interface.
func openError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("tun: no /dev/net/tun: load the module (modprobe tun) or, in a container, pass the device in (--device /dev/net/tun): %w", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return exitcode.AsAbsent(fmt.Errorf("tun: no CAP_NET_ADMIN: run as root, or give the program the capability (setcap cap_net_admin+ep PROGRAM): %w", err))
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("tun: interface %s is in use by another process: choose another name: %w", name, err)
	}
	return fmt.Errorf("tun: cannot create interface %q: %w", name, err)
}
