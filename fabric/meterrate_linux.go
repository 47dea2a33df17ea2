package fabric

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// asTheyAre fills in what the kernel knows about ports. If no rate is given, it takes that
// of a token bucket (tbf) or the device's speed. If the rate is the bucket's, and neither
// queue nor burst is given, it takes the bucket's, too.
func asTheyAre(h *netlink.Handle, links []netlink.Link, ports []MeterPort) ([]MeterPort, error) {
	qdiscs, err := kernel.Dumped(func() ([]netlink.Qdisc, error) { return h.QdiscList(nil) })
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("queues: %w", err))
	}
	buckets := make(map[int]*netlink.Tbf)
	for _, q := range qdiscs {
		if t, ok := q.(*netlink.Tbf); ok && t.Parent == netlink.HANDLE_ROOT {
			buckets[t.LinkIndex] = t
		}
	}
	ports = slices.Clone(ports)
	for i := range ports {
		p, bucket := &ports[i], buckets[links[i].Attrs().Index]
		if bucket != nil && p.RateBits == 0 {
			p.RateBits = float64(bucket.Rate) * 8
		}
		if bucket != nil && uint64(p.RateBits/8) == bucket.Rate && p.QueueBytes == 0 && p.BurstBytes == 0 {
			p.QueueBytes = int(bucket.Limit)
			p.BurstBytes = int(netlink.Xmitsize(bucket.Rate, bucket.Buffer))
		}
		if p.RateBits != 0 {
			continue
		}
		if p.RateBits, err = deviceSpeed(p.Name); err != nil {
			return nil, fmt.Errorf("port %s: %w", p.Name, err)
		}
	}
	return ports, nil
}

// deviceSpeed asks a device of the calling thread's network namespace for its
// speed, in bit/s: ETHTOOL_GSET of linux/ethtool.h.
func deviceSpeed(name string) (float64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cmd := struct {
		cmd, supported, advertising uint32
		low                         uint16
		_                           [14]byte
		high                        uint16
		_                           [14]byte
	}{cmd: unix.ETHTOOL_GSET}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&cmd)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	mbit := uint32(cmd.high)<<16 | uint32(cmd.low)
	if errno != 0 || mbit == 0 || mbit == 0xffffffff || mbit == 0xffff {
		return 0, errors.New("the device does not say how fast it is; give the rate")
	}
	return float64(mbit) * 1e6, nil
}
