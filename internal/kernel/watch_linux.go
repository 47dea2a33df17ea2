package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Watch tells when the kernel may have changed a part of a node's set-up: devices,
// addresses, rules, routes, filters, and settings that the kernel reports. It does not
// report TCX programs and other settings: look at these from time to time.
type Watch struct {
	concerns func(kind uint16, data []byte) bool
	socket   *nl.NetlinkSocket
	changed  chan struct{} // buffers one
	closing  sync.Once
	ended    sync.WaitGroup
}

var watchedGroups = []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
	unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF}

// NewWatch begins to watch the network namespace of the calling thread. concerns tells
// which of the kernel's messages count. kind is rtnetlink's; data is what follows its
// header.
func NewWatch(concerns func(kind uint16, data []byte) bool) (*Watch, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, watchedGroups...)
	if err != nil {
		return nil, fmt.Errorf("watch the kernel's settings: %w", err)
	}
	w := &Watch{concerns: concerns, socket: s, changed: make(chan struct{}, 1)}
	w.ended.Go(w.run)
	return w, nil
}

// Changed receives when something may have changed since the last time.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() error {
	w.closing.Do(w.socket.Close)
	w.ended.Wait()
	return nil
}

func (w *Watch) run() {
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

func (w *Watch) tell() {
	select {
	case w.changed <- struct{}{}:
	default: // it has not been looked at yet
	}
}
