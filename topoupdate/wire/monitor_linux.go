package wire

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// monitorBuffer is room, in bytes, for the kernel's messages about devices while nobody
// reads: some thousand. After more, all devices are listed again.
const monitorBuffer = 4 << 20

// monitor follows the devices of a network namespace by rtnetlink(7): first it
// lists all, then it tells every change. It stays in the namespace in which it
// was made.
type monitor struct {
	fd       int
	buf      []byte
	ports    []watched
	byName   map[string]int
	join     func(port int, device link) error // the port's device is there, or is another one now
	report   func(port int, up bool)
	listing  bool
	again    bool // what the list says may be old
	overruns uint64
	early    uint64 // losses of carriers that the kernel had counted and not told yet
	err      error
}

// skipStatistics is RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h.
const skipStatistics = 1 << 3

// watched is a port's device as far as it is known.
type watched struct {
	index    int // 0: none
	up       bool
	reported bool // up was told
	losses   uint32
	seen     bool // in the list that is being read
}

func openMonitor(interfaces []string, buffer int) (*monitor, error) {
	m := &monitor{fd: -1, buf: make([]byte, 64<<10), ports: make([]watched, len(interfaces)), byName: make(map[string]int)}
	for i, name := range interfaces {
		m.byName[name] = i
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink socket: %w", err)
	}
	m.fd = fd
	setReceiveBuffer(fd, buffer)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("subscribe to changes of devices: %w", err)
	}
	return m, nil
}

// list asks for all devices. The answer is between the changes, in its place.
func (m *monitor) list() error {
	if m.listing {
		m.again = true
		return nil
	}
	b := make([]byte, messageHeader+linkHeader+8)
	putNative(b, uint32(len(b)), unix.RTM_GETLINK|(unix.NLM_F_REQUEST|unix.NLM_F_DUMP)<<16)
	// Without statistics, half of the answer.
	putNative(b[messageHeader+linkHeader:], 8|unix.IFLA_EXT_MASK<<16, skipStatistics)
	if err := unix.Sendto(m.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("list the devices: %w", err)
	}
	m.listing, m.again = true, false
	for i := range m.ports {
		m.ports[i].seen = false
	}
	return nil
}

// listTime bounds how long the kernel may take to list the devices, in
// milliseconds.
const listTime = 5000

// first lists the devices and waits for the answer.
func (m *monitor) first() error {
	if err := m.list(); err != nil {
		return err
	}
	for m.listing {
		ready := []unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, listTime); n == 0 && err == nil {
			return fmt.Errorf("list the devices: no answer within %d ms", listTime)
		}
		if err := m.read(); err != nil {
			return err
		}
	}
	return nil
}

// read takes all that the kernel has to say.
func (m *monitor) read() error {
	for m.err == nil {
		n, from, err := unix.Recvfrom(m.fd, m.buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return m.err
		case errors.Is(err, unix.ENOBUFS):
			m.overruns++
			if err := m.list(); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("changes of devices: %w", err)
		}
		if a, ok := from.(*unix.SockaddrNetlink); ok && a.Pid == 0 { // else it is not the kernel
			parseLinks(m.buf[:n], m)
		}
	}
	return m.err
}

// link implements linkListener.
func (m *monitor) link(l link) {
	port, ours := m.byName[l.name]
	for i := range m.ports { // it may have had another name before
		if m.ports[i].index == l.index && (l.removed || !ours || i != port) {
			m.gone(i)
		}
	}
	if !ours || l.removed {
		return
	}
	p := &m.ports[port]
	p.seen = true
	if p.index != l.index {
		if p.index != 0 {
			m.gone(port)
		}
		p.index, p.losses = l.index, l.losses
		if err := m.join(port, l); err != nil {
			if !errors.Is(err, unix.ENODEV) { // else it is gone again, as we shall hear
				m.err = err
			}
			return
		}
	}
	if int32(l.losses-p.losses) < 0 {
		return // of before a loss that lost has told
	}
	// It may have gone down and up before we looked: the kernel has counted.
	if p.up && l.up && p.losses != l.losses {
		m.set(port, false)
	}
	p.losses = l.losses
	m.set(port, l.up)
}

// lost takes what the kernel has counted of a port's losses of its carrier, which
// may come long before its message. What is true afterwards only that can tell.
func (m *monitor) lost(port int, losses uint32) {
	p := &m.ports[port]
	if p.index != 0 && p.up && p.losses != losses {
		p.losses = losses
		m.early++
		m.set(port, false)
	}
}

func (m *monitor) gone(port int) {
	m.ports[port].index = 0
	m.set(port, false)
}

// set tells the state of a port if it is news.
func (m *monitor) set(port int, up bool) {
	p := &m.ports[port]
	if p.reported && p.up == up {
		return
	}
	p.up, p.reported = up, true
	m.report(port, up)
}

// listed implements linkListener.
func (m *monitor) listed(interrupted bool) {
	m.listing = false
	for i := range m.ports {
		if !m.ports[i].seen {
			m.gone(i)
		}
	}
	if interrupted || m.again {
		m.err = m.list()
	}
}

// refused implements linkListener. The kernel refuses a second list while it
// makes one (EBUSY), which is not asked for.
func (m *monitor) refused(errno int32) {
	if errno != 0 {
		m.err = fmt.Errorf("list the devices: %w", unix.Errno(-errno))
	}
}

func (m *monitor) close() { unix.Close(m.fd) }
