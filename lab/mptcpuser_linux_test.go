package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// pair makes two namespaces with a cable between them, 10.99.0.1 and 10.99.0.2.
func pair(t *testing.T) (a, b string) {
	a, b = kerneltest.Namespace(t, "a"), kerneltest.Namespace(t, "b")
	kerneltest.EthernetPair(t, a, "p0", "p1")
	kerneltest.Shell(t, a, "ip link set p1 netns "+b+" && ip addr add 10.99.0.1/24 dev p0 && ip link set p0 up && ip link set lo up")
	kerneltest.Shell(t, b, "ip addr add 10.99.0.2/24 dev p1 && ip link set p1 up && ip link set lo up")
	return a, b
}

// A connection has as many subflows as weft's path managers are told, which are more than the
// kernel's opens. It carries bytes. A message that another program sends is no connection.
func TestSubflower_opensSubflows(t *testing.T) {
	kerneltest.NeedRoot(t)
	if _, err := os.Stat(mptcpManager); errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no MPTCP, or no path managers in userspace")
	}
	a, b := pair(t)
	for _, extra := range []int{15, MaxManagedSubflows - 1} {
		t.Run(fmt.Sprint(extra), func(t *testing.T) { subflowsOpened(t, a, b, extra) })
	}
}

// within does something in a namespace.
func within(t *testing.T, ns string, f func() error) {
	t.Helper()
	if err := kernel.InNamespace(ns, f); err != nil {
		t.Fatal(err)
	}
}

// joinedAt is how many subflows a namespace has accepted.
func joinedAt(t *testing.T, ns string) (n int) {
	t.Helper()
	within(t, ns, func() (err error) { n, err = netstat("MPTcpExt:", "MPJoinAckRx"); return err })
	return n
}

// manager is the path manager of a namespace until the end of the test.
func manager(t *testing.T, ns string, extra int) (s *subflower) {
	t.Helper()
	within(t, ns, func() (err error) { s, err = startSubflower(extra); return err })
	t.Cleanup(s.close)
	return s
}

func subflowsOpened(t *testing.T, a, b string, extra int) {
	s := manager(t, a, extra)
	manager(t, b, extra)
	before := joinedAt(t, b)
	forge(t, a, s)
	var l net.Listener
	within(t, b, func() (err error) {
		var c net.ListenConfig
		c.SetMultipathTCP(true)
		l, err = c.Listen(context.Background(), "tcp", "10.99.0.2:5002")
		return err
	})
	echoed := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-echoed
	})
	go func() {
		defer close(echoed)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(kerneltest.Patience))
		io.Copy(c, c)
	}()
	var c net.Conn
	within(t, a, func() (err error) {
		d := net.Dialer{Timeout: kerneltest.Patience}
		d.SetMultipathTCP(true)
		c, err = d.Dial("tcp", "10.99.0.2:5002")
		return err
	})
	t.Cleanup(func() { c.Close() }) // before the listener's, which waits for it
	if err := c.SetDeadline(time.Now().Add(kerneltest.Patience)); err != nil {
		t.Fatal(err)
	}
	echo := func(n uint64) {
		t.Helper()
		var b [8]byte
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, n)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b[:]); err != nil || binary.BigEndian.Uint64(b[:]) != n {
			t.Fatal(b, err)
		}
	}
	echo(1)
	kerneltest.Within(t, kerneltest.Patience, "the subflows", func() bool { return joinedAt(t, b)-before >= extra })
	echo(2)
	if n := joinedAt(t, b) - before; n != extra {
		t.Errorf("%d subflows joined, want %d", n, extra)
	}
	want := SubflowCounts{Connections: 1, Opened: int64(extra)}
	kerneltest.Within(t, kerneltest.Patience, "the counts", func() bool { return s.read().Opened == want.Opened })
	if got := s.read(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	t.Log(kerneltest.Shell(t, a, "ss -Mn; ss -tnH | wc -l"))
}

// forge sends a manager the message that a connection is established, which does not exist.
func forge(t *testing.T, ns string, to *subflower) {
	t.Helper()
	pid, err := to.events.GetPid()
	if err != nil {
		t.Fatal(err)
	}
	event := establishedEvent(eventAttr(mptcpEventToken, 9, 9, 9, 9), eventAttr(mptcpEventSource4, 10, 99, 0, 1), eventAttr(mptcpEventTarget4, 10, 99, 0, 2), eventAttr(mptcpEventTargetPort, 0x13, 0x8a))
	header := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(event)))
	header = binary.NativeEndian.AppendUint16(header, to.family)
	header = append(header, make([]byte, unix.NLMSG_HDRLEN-len(header))...)
	within(t, ns, func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, append(header, event...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: pid})
	})
}

// A connection that ended before it had its subflows is counted as that.
func TestSubflower_countsByCause(t *testing.T) {
	kerneltest.NeedRoot(t)
	if _, err := os.Stat(mptcpManager); errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no MPTCP, or no path managers in userspace")
	}
	ns, _ := pair(t)
	s := manager(t, ns, 3)
	c, ok := parseMPTCPEvent(establishedEvent(eventAttr(mptcpEventToken, 9, 9, 9, 9), eventAttr(mptcpEventSource4, 10, 99, 0, 1), eventAttr(mptcpEventTarget4, 10, 99, 0, 2), eventAttr(mptcpEventTargetPort, 0x13, 0x8a)))
	if got := s.open(c); !ok || got != (SubflowCounts{Connections: 1, Ended: 1}) {
		t.Errorf("a connection that is not there: %+v", got)
	}
}

// establishedEvent is an event that a connection is established.
func establishedEvent(attrs ...[]byte) []byte {
	return slices.Concat(append([][]byte{{mptcpEventEstablished, 1, 0, 0}}, attrs...)...)
}

// eventAttr is an attribute of an event.
func eventAttr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// What is no established connection of this end's has no subflows, whatever its bytes.
func FuzzParseMPTCPEvent(f *testing.F) {
	event, attr := establishedEvent, eventAttr
	token, from, to, port := attr(mptcpEventToken, 1, 2, 3, 4), attr(mptcpEventSource4, 10, 0, 0, 2), attr(mptcpEventTarget4, 10, 0, 1, 2), attr(mptcpEventTargetPort, 0x13, 0x8a)
	good := event(token, from, to, port, attr(mptcpEventServer, 0))
	if c, ok := parseMPTCPEvent(good); !ok || c.port != 5002 || c.from.String() != "10.0.0.2" || c.to.String() != "10.0.1.2" || c.token != binary.NativeEndian.Uint32([]byte{1, 2, 3, 4}) {
		f.Fatalf("%+v, %v", c, ok)
	}
	for _, bad := range [][]byte{nil, good[:3], append([]byte{1}, good[1:]...), event(token, from, to), event(from, to, port), event(token, from, to, port, attr(mptcpEventServer, 1)),
		event(token, from, to, port, attr(mptcpEventFlags, binary.NativeEndian.AppendUint16(nil, mptcpEventFlagServer)...)), event(token, attr(mptcpEventSource4, 1), to, port)} {
		if c, ok := parseMPTCPEvent(bad); ok {
			f.Fatalf("%v is %+v", bad, c)
		}
		f.Add(bad)
	}
	f.Add(good)
	// The last attribute of these is not padded to 4 bytes, or is longer than what there is.
	f.Add(event([]byte{5, 0, 1, 0, 9}))
	f.Add(event(token, from, to, []byte{6, 0, mptcpEventTargetPort, 0, 1, 2, 3}))
	f.Add(event([]byte{6, 0, 1, 0, 9}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := parseMPTCPEvent(b); ok && (c.port == 0 || !c.from.Is4() || !c.to.Is4() || b[0] != mptcpEventEstablished) {
			t.Errorf("%v is %+v", b, c)
		}
	})
}
