package kernel

import (
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/vishvananda/netlink"
)

// The kernel's own connections are found with what they have carried, and not those on
// loopback addresses.
func TestConnections(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace of its own")
	}
	runtime.LockOSThread() // and never given back: the thread ends in its namespace
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
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
			return c.Remote.Addr() == netip.MustParseAddr(want) && c.Received == 100_000 && c.Local.Port() != 0
		}) {
			t.Errorf("no connection with %s that has got 100,000 bytes: %+v", want, all)
		}
	}
	if len(all) != 4 {
		t.Errorf("%d connections, want both ends of 2: %+v", len(all), all)
	}
}
