package link

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/songgao/water"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TUN is a TUN interface without offloads: one packet per system call.
type TUN struct {
	file   *os.File
	raw    syscall.RawConn
	name   string
	mtu    int
	drops  atomic.Uint64
	closed atomic.Bool
}

// OpenTUN creates an interface in the network namespace of the calling thread
// and brings it up. It goes away with Close or with the process. The kernel
// must forward IPv4, or nothing that weft writes would leave the machine.
func OpenTUN(c TUNConfig) (*TUN, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	ifc, err := water.New(water.Config{
		DeviceType:             water.TUN,
		PlatformSpecificParams: water.PlatformSpecificParams{Name: c.Name},
	})
	if err != nil {
		return nil, openError(c.Name, err)
	}
	file, ok := ifc.ReadWriteCloser.(*os.File)
	if !ok {
		ifc.Close()
		return nil, fmt.Errorf("tun: water gave a %T, wanted a file", ifc.ReadWriteCloser)
	}
	raw, err := file.SyscallConn()
	if err == nil {
		err = configure(ifc.Name(), c)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("tun %s: %w", ifc.Name(), err)
	}
	return &TUN{file: file, raw: raw, name: ifc.Name(), mtu: c.MTU}, nil
}

// openError says what is missing when the kernel refuses a TUN interface.
func openError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("tun: no /dev/net/tun: load the module (modprobe tun) or, in a container, pass the device in (--device /dev/net/tun): %w", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("tun: no CAP_NET_ADMIN: run as root, or give the program the capability (setcap cap_net_admin+ep PROGRAM): %w", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("tun: interface %s is in use by another process: choose another name: %w", name, err)
	}
	return fmt.Errorf("tun: cannot create interface %q: %w", name, err)
}

func configure(name string, c TUNConfig) error {
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); err == nil && b[0] == '0' {
		return errors.New("the kernel does not forward IPv4 here, so packets could not pass between the interface and the fabric: sysctl -w net.ipv4.ip_forward=1")
	}
	ifc, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(ifc, c.MTU-c.Overhead); err != nil {
		return fmt.Errorf("set MTU %d: %w", c.MTU-c.Overhead, err)
	}
	if c.Address.IsValid() {
		addr := &netlink.Addr{IPNet: ipNet(c.Address)}
		if err := netlink.AddrAdd(ifc, addr); err != nil {
			return fmt.Errorf("add address %s: %w", c.Address, err)
		}
	}
	if err := netlink.LinkSetUp(ifc); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	for _, p := range c.Routes {
		route := &netlink.Route{LinkIndex: ifc.Attrs().Index, Dst: ipNet(p), Scope: netlink.SCOPE_LINK}
		switch err := netlink.RouteAdd(route); {
		case errors.Is(err, unix.EEXIST):
			return fmt.Errorf("route %s exists already: is another weft using this address here? %w", p, err)
		case err != nil:
			return fmt.Errorf("add route %s: %w", p, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{
		IP:   p.Addr().AsSlice(),
		Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
	}
}

// Name returns the interface's name.
func (t *TUN) Name() string { return t.name }

// MTU returns the fabric's MTU in bytes.
func (t *TUN) MTU() int { return t.mtu }

// Drops returns how many packets the kernel refused.
func (t *TUN) Drops() uint64 { return t.drops.Load() }

// Read implements the package's Read. Once a packet is there it takes those
// that follow without waiting.
func (t *TUN) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	var failed error
	err = t.raw.Read(func(fd uintptr) bool {
		for n < len(bufs) {
			size, err := unix.Read(int(fd), bufs[n][offset:])
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EAGAIN):
				return n > 0
			case err != nil:
				failed = err
				return true
			}
			sizes[n] = size
			n++
		}
		return true
	})
	return n, t.closedOr(errors.Join(err, failed))
}

// Write implements the package's Write, a system call per packet.
func (t *TUN) Write(bufs [][]byte, offset int) (n int, err error) {
	err = t.raw.Write(func(fd uintptr) bool {
		for _, b := range bufs {
			for {
				_, err := unix.Write(int(fd), b[offset:])
				if errors.Is(err, unix.EINTR) {
					continue
				}
				if err == nil {
					n++
				}
				break
			}
		}
		return true
	})
	t.drops.Add(uint64(len(bufs) - n))
	return n, t.closedOr(err)
}

// closedOr is net.ErrClosed in place of whatever else Close has caused.
func (t *TUN) closedOr(err error) error {
	if err != nil && t.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// Close removes the interface and unblocks Read. It may be called more than
// once.
func (t *TUN) Close() error {
	if t.closed.Swap(true) {
		return nil
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("tun %s: %w", t.name, err)
	}
	return nil
}
