package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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
	events  *nl.NetlinkSocket
	calls   *kernel.GenlSocket
	family  uint16
	extra   int           // subflows beside the first
	closing chan struct{} // closed by close
	ended   chan struct{}

	mu     sync.Mutex
	counts SubflowCounts
}

// startSubflower makes a subflower the path manager of the calling thread's namespace.
func startSubflower(extra int) (s *subflower, err error) {
	s = &subflower{extra: extra, closing: make(chan struct{}), ended: make(chan struct{})}
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
	now, err := os.ReadFile(mptcpManager)
	if err == nil && strings.TrimSpace(string(now)) == value {
		return nil // it may be read-only
	}
	if err == nil {
		err = os.WriteFile(mptcpManager, []byte(value), 0o644)
	}
	switch {
	case err != nil && !user:
		return fmt.Errorf("the kernel's path manager of MPTCP cannot be chosen: %w", err)
	case err != nil:
		return fmt.Errorf("MPTCP with more than %d subflows needs Linux 5.19 or later, whose path managers may be programs: %w", MaxMPTCPSubflows, err)
	}
	return nil
}

// serve opens subflows until close. Events that did not fit the buffer are lost.
func (s *subflower) serve() {
	defer close(s.ended)
	for {
		messages, from, err := s.events.Receive()
		select {
		case <-s.closing:
			return
		default:
		}
		if err != nil {
			s.count(SubflowCounts{Lost: 1})
			if errors.Is(err, syscall.ENOBUFS) {
				continue
			}
			return // nothing is heard any more
		}
		if from.Pid != nl.PidKernel { // another program's
			continue
		}
		for _, m := range messages {
			if c, ok := parseMPTCPEvent(m.Data); ok {
				s.count(s.open(c))
			}
		}
	}
}

// open opens the further subflows of a connection.
func (s *subflower) open(c mptcpConnection) SubflowCounts {
	done := SubflowCounts{Connections: 1}
	for range s.extra {
		_, err := s.calls.Call(s.family, kernel.GenlHeader{Command: mptcpCmdSubflow, Version: mptcpVersion}, c.subflowAttrs()...)
		switch {
		case err == nil:
			done.Opened++
			continue
		case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTCONN):
			done.Ended = 1
		default:
			done.Refused = 1
		}
		break
	}
	return done
}

func (s *subflower) count(c SubflowCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = s.counts.Add(c)
}

// read returns what has been counted.
func (s *subflower) read() SubflowCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// close ends the manager. Connections keep their subflows. Until setMPTCPManager new connections
// of the namespace have no manager.
func (s *subflower) close() {
	close(s.closing)
	s.events.Close()
	<-s.ended
	s.calls.Close()
}
