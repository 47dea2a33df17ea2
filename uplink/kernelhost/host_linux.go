package kernelhost

import (
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/daemon"
	"weft/uplink"
)

// below is what carries a Host's packets.
type below struct{ *daemon.Embedded }

func embed(c daemon.EmbedConfig) (embedded, error) {
	e, err := daemon.Embed(c)
	if err != nil {
		return nil, err
	}
	return below{e}, nil
}

// stats are the counters of the daemon's programs.
func (b below) stats() (s Stats, err error) {
	o, order, err := b.Counters()
	if err != nil {
		return s, err
	}
	s = Stats{Encapsulated: o.Encapsulated, Plain: o.Plain, Dropped: o.Broken, Chosen: o.Chosen,
		Passed:   o.Passed + o.Unattended + o.Refused + o.NoPath + o.TooLong + o.Malformed,
		Straight: order.Straight, Diverted: order.Diverted}
	for _, x := range o.Bounces {
		s.Bounces = append(s.Bounces, uplink.Bounce{Addr: x.Addr, Packets: x.Packets, Bytes: x.Bytes, Flowcells: x.Flowcells})
	}
	status := b.Status()
	s.Working, s.Repairs, s.Trouble = status.State == daemon.StateWorking, status.Repairs, status.Trouble
	return s, nil
}

// bindTo has a socket send from an address. The kernel finds a port when it connects, so that
// connections to different addresses can have the same one.
func bindTo(raw syscall.RawConn, a netip.Addr) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		// Without it, which Linux has since 4.2, there are fewer connections at a time.
		unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if a.Is6() {
			failed = unix.Bind(int(fd), &unix.SockaddrInet6{Addr: a.As16()})
		} else {
			failed = unix.Bind(int(fd), &unix.SockaddrInet4{Addr: a.As4()})
		}
	})
	return errors.Join(err, failed)
}
