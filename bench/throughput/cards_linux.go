package throughput

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/topology"
)

// cards is a way over links to hosts that behave as those of network cards: only packets pass,
// and hosts merge what arrives in order (GRO). A veth pair passes super-segments whole and
// merges nothing, which no hardware does.
func cards(w way) way {
	w.around = func(b *bench) (undo func() error, err error) {
		undo = func() error { return b.setCards(false) }
		if err := b.setCards(true); err != nil {
			return nil, errors.Join(err, undo())
		}
		return undo, nil
	}
	return w
}

// setCards changes both ends of the hosts' links. The programs of weft pass by both.
func (b *bench) setCards(on bool) error {
	for _, host := range []topology.NodeID{b.from, b.to} {
		up := b.topology.Ports(host)[0]
		port := fmt.Sprintf(fabric.DefaultPortFormat, up.PeerPort)
		err := errors.Join(
			b.lab.Do(up.Peer, func() error { return setFeature(port, ethtoolSetTSO, !on) }),
			b.lab.Do(host, func() error { return setFeature(uplinkName, ethtoolSetGRO, on) }),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// Commands of linux/ethtool.h, which x/sys lacks.
const (
	ethtoolSetTSO = 0x1f
	ethtoolSetGRO = 0x2c
)

// setFeature turns a device's offload on or off, in the calling thread's network namespace.
func setFeature(device string, command uint32, on bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	value := struct{ command, data uint32 }{command: command}
	if on {
		value.data = 1
	}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return fmt.Errorf("ethtool command %#x of %s: %w", command, device, errno)
	}
	return nil
}

// kernelPackets is kernelTCP without super-segments at the sender: the limit of what goes
// packet by packet.
var kernelPackets = way{open: func(s site) (*host, error) {
	l, err := netlink.LinkByName(uplinkName)
	if err != nil {
		return nil, err
	}
	was := l.Attrs().GSOMaxSegs
	if err := netlink.LinkSetGSOMaxSegs(l, 1); err != nil {
		return nil, err
	}
	undo := func() error { return netlink.LinkSetGSOMaxSegs(l, int(was)) }
	h, err := kernelTCP.open(s)
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	h.close = undo
	return h, nil
}}
