package lab

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/vishvananda/netlink/nl"

	"weft/internal/kernel"
)

const (
	mptcpEvents       = "mptcp_pm_events" // a group of the family
	mptcpCmdSubflow   = 10
	mptcpAttrToken    = 4
	mptcpAttrRemote   = 6
	mptcpAddrID       = 2
	mptcpManager      = "/proc/sys/net/mptcp/pm_type" // of the calling thread's namespace, for new connections
	mptcpEventsBuffer = 1 << 20                       // bytes of events that wait
)

// subflower is the path manager of a network namespace in userspace: it opens further subflows of
// each connection that the namespace's programs open, to the same address and port. The kernel's
// own manager stops at 8 addresses. Ends that accept need one, too: without a listener to events the
// kernel refuses further subflows.
type subflower struct {
	events *nl.NetlinkSocket
	calls  *kernel.GenlSocket
	family uint16
	extra  int // subflows beside the first
	ended  chan struct{}
}

// startSubflower makes a subflower the path manager of the calling thread's namespace.
func startSubflower(extra int) (s *subflower, err error) {
	s = &subflower{extra: extra, ended: make(chan struct{})}
	if s.family, err = kernel.GenlFamily(mptcpFamily); err != nil {
		return nil, err
	}
	if s.events, err = kernel.GenlEvents(mptcpFamily, mptcpEvents); err != nil {
		return nil, err
	}
	err = s.events.SetReceiveBufferSize(mptcpEventsBuffer, true)
	if err == nil {
		s.calls, err = kernel.OpenGenl()
	}
	if err == nil {
		err = setMPTCPManager(true)
	}
	if err != nil {
		s.events.Close()
		if s.calls != nil {
			s.calls.Close()
		}
		return nil, err
	}
	go s.serve()
	return s, nil
}

// setMPTCPManager chooses who manages the new connections of the calling thread's namespace.
func setMPTCPManager(user bool) error {
	value := "0"
	if user {
		value = "1"
	}
	if err := os.WriteFile(mptcpManager, []byte(value), 0o644); err != nil {
		return fmt.Errorf("MPTCP with more than %d subflows needs Linux 5.19 or later, whose path managers may be programs: %w", MaxMPTCPSubflows, err)
	}
	return nil
}

// serve opens subflows until close. Events that did not fit the buffer are lost: these connections
// have one subflow.
func (s *subflower) serve() {
	defer close(s.ended)
	for {
		messages, _, err := s.events.Receive()
		if errors.Is(err, syscall.ENOBUFS) {
			continue
		}
		if err != nil {
			return // closed
		}
		for _, m := range messages {
			c, ok := parseMPTCPEvent(m.Data)
			if !ok {
				continue
			}
			for range s.extra {
				if _, err := s.calls.Call(s.family, kernel.GenlHeader{Command: mptcpCmdSubflow, Version: mptcpVersion}, c.subflowAttrs()...); err != nil {
					break // the connection has ended, or fell back to TCP
				}
			}
		}
	}
}

// close ends the manager. Connections keep their subflows.
func (s *subflower) close() {
	s.events.Close()
	<-s.ended
	s.calls.Close()
}
