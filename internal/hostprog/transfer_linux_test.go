package hostprog

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
)

// leaveRoom makes the MTU of the source's routes less than its uplink's until the
// end of the test, as whoever runs the spray program must.
func (s *sprayed) leaveRoom(t *testing.T) {
	t.Helper()
	before := s.setRouteMTU(t, 1500-s.overhead())
	t.Cleanup(func() { s.setRouteMTU(t, before) })
}

// setRouteMTU sets the MTU of the source's routes over its uplink, all of which
// have the same, and returns what it was.
func (s *sprayed) setRouteMTU(t *testing.T, mtu int) (before int) {
	t.Helper()
	err := s.lab.Do(s.src.ID, func() error {
		routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
		for _, r := range routes {
			if r.Gw != nil {
				before, r.MTU = r.MTU, mtu
				err = errors.Join(err, netlink.RouteReplace(&r))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return before
}

// overhead is what the program adds, in bytes.
func (s *sprayed) overhead() int {
	return s.oracle.table[rackOf(s.dst.Addr)].carrier.Overhead()
}

// cubic sends n bytes over one connection of the kernel's and waits until they
// have arrived as they were.
func (s *sprayed) cubic(t *testing.T, n int) {
	t.Helper()
	var l net.Listener
	err := s.lab.Do(s.dst.ID, func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(s.dst.Addr, 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
	arrived := make(chan error, 1)
	go func() { arrived <- receiveAll(l, sent) }()
	err = s.lab.Do(s.src.ID, func() error {
		d := net.Dialer{Timeout: kerneltest.Patience, Control: func(_, _ string, c syscall.RawConn) (err error) {
			c.Control(func(fd uintptr) {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
			})
			return err
		}}
		conn, err := d.Dial("tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write(sent); err != nil {
			return err
		}
		return <-arrived
	})
	if err != nil {
		t.Fatal(err)
	}
}

func receiveAll(l net.Listener, want []byte) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other bytes arrived than were sent")
	}
	return nil
}
