package kernel

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The kernel's own connections are found with what they have carried, and not those on
// loopback addresses.
func TestConnections(t *testing.T) {
	aloneWith192_0_2_1(t)
	for _, at := range []string{"127.0.0.1:0", "192.0.2.1:0", "[2001:db8::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)) // net.Dial may use another thread
		for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			a, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)) // the route to a new address comes a little later
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a.Write(make([]byte, 100_000))
		if _, err := io.ReadFull(b, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Connections()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"192.0.2.1", "2001:db8::1"} {
		if !slices.ContainsFunc(all, func(c Connection) bool {
			return c.Remote.Addr() == netip.MustParseAddr(want) && c.Received == 100_000 && c.Local.Port() != 0 && c.State == StateEstablished
		}) {
			t.Errorf("no connection with %s that has got 100,000 bytes: %+v", want, all)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d connections, want both ends of 2: %+v", len(all), all)
	}
}

// aloneWith192_0_2_1 is called in a network namespace of its own from then on, with the addresses
// 192.0.2.1 and 2001:db8::1.
func aloneWith192_0_2_1(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace of its own")
	}
	runtime.LockOSThread() // and never given back: the thread ends in its namespace
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	for _, a := range []string{"192.0.2.1/32", "2001:db8::1/128"} {
		if addr, err2 := netlink.ParseAddr(a); err == nil && err2 == nil {
			if addr.Flags = 0x80; strings.Contains(a, ":") { // IFA_F_NODAD and 0x80: permanent at once
				addr.Flags |= 0x02
			}
			err = netlink.AddrAdd(lo, addr)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What waits for an answer is listed with its state while it is opened or closed: a SYN that a
// full listener drops, and data before a FIN for which the peer has no room. The listener is not.
func TestConnections_openingAndClosing(t *testing.T) {
	aloneWith192_0_2_1(t)
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	at := &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 4000}
	if err := errors.Join(unix.Bind(listener, at), unix.Listen(listener, 0)); err != nil {
		t.Fatal(err)
	}
	dial := func() int {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if err = unix.Connect(s, at); err == nil || err == unix.EINPROGRESS {
				return s
			}
			if time.Now().After(end) { // the route to a new address comes a little later
				t.Fatal(err)
			}
		}
	}
	first := dial() // the one that a listener without a backlog has room for
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(first), Events: unix.POLLOUT}}, 30_000); n != 1 || err != nil {
		t.Fatal("not connected: ", err)
	}
	for full := false; !full; {
		n, err := unix.Write(first, make([]byte, 1<<16))
		full = err == unix.EAGAIN
		if n <= 0 && !full {
			t.Fatal(err)
		}
	}
	unix.Close(first)
	defer unix.Close(dial())

	want := []string{"established", "fin-wait-1", "syn-sent"}
	var got []string
	for end := time.Now().Add(30 * time.Second); !slices.Equal(got, want) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all, err := Connections()
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, c := range all {
			if !slices.Contains(ConnectionStates(), c.State) {
				t.Errorf("the state %q is not among ConnectionStates", c.State)
			}
			if waits := c.Waiting > 0; waits != (c.State != StateEstablished) || c.State == "syn-sent" && c.Waiting != 1 {
				t.Errorf("%s: %d bytes wait", c.State, c.Waiting)
			}
			got = append(got, c.State)
		}
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}
