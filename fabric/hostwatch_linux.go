package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// HostWatch tells when the kernel may have changed what a host's set-up is made
// of: devices, addresses, rules, its own routes and the default ones, filters,
// settings that the kernel tells of. What the kernel is silent about, such as
// TCX programs and the other settings, must be looked at from time to time.
type HostWatch struct {
	concerns func(kind uint16, data []byte) bool
	socket   *nl.NetlinkSocket
	changed  chan struct{} // buffers one
	closing  sync.Once
	ended    sync.WaitGroup
}

var watchedGroups = []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
	unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF}

// WatchHost begins to watch the network namespace of the calling thread.
func WatchHost() (*HostWatch, error) { return watch(concernsHost) }

// WatchSwitch is WatchHost for a switch: of routes it tells when the planned ones
// change. That one of another protocol has taken a planned one's place must be looked
// for from time to time.
func WatchSwitch() (*HostWatch, error) { return watch(concernsSwitch) }

func watch(concerns func(kind uint16, data []byte) bool) (*HostWatch, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, watchedGroups...)
	if err != nil {
		return nil, fmt.Errorf("watch the kernel's settings: %w", err)
	}
	w := &HostWatch{concerns: concerns, socket: s, changed: make(chan struct{}, 1)}
	w.ended.Go(w.run)
	return w, nil
}

// Changed receives when something may have changed since the last time.
func (w *HostWatch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch. It may be called more than once.
func (w *HostWatch) Close() error {
	w.closing.Do(w.socket.Close)
	w.ended.Wait()
	return nil
}

func (w *HostWatch) run() {
	for {
		messages, from, err := w.socket.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS): // some are lost
			w.tell()
			continue
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return // closed
		case from.Pid != nl.PidKernel:
			continue
		}
		for i := range messages {
			if w.concerns(messages[i].Header.Type, messages[i].Data) {
				w.tell()
				break
			}
		}
	}
}

func (w *HostWatch) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // it has not been looked at yet
	}
}

// concernsHost leaves out other routes than weft's own and default ones, of which
// a host that speaks BGP gets many.
func concernsHost(kind uint16, data []byte) bool {
	if kind != unix.RTM_NEWROUTE && kind != unix.RTM_DELROUTE {
		return true
	}
	if len(data) < unix.SizeofRtMsg {
		return false
	}
	bits, table := data[1], uint32(data[4])
	for b := data[unix.SizeofRtMsg:]; len(b) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.RTA_TABLE && n >= unix.SizeofRtAttr+4 {
			table = binary.NativeEndian.Uint32(b[unix.SizeofRtAttr:])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return bits == 0 || table == HostTableIn || table == HostTableOut
}

// concernsSwitch leaves out routes that are nobody's plan.
func concernsSwitch(kind uint16, data []byte) bool {
	if kind != unix.RTM_NEWROUTE && kind != unix.RTM_DELROUTE {
		return true
	}
	return len(data) >= unix.SizeofRtMsg && data[5] == routeProtocol
}
