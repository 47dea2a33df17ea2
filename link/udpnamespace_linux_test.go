package link

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namespace moves the test to a network namespace of its own, which goes away
// with the test's thread.
func namespace(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: works on interfaces of a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

// loopbackUp sets the namespace's loopback interface up.
func loopbackUp(t *testing.T, mtu int) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = errors.Join(netlink.LinkSetMTU(lo, mtu), netlink.LinkSetUp(lo))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestUDP_reportsAPathThatIsTooNarrow(t *testing.T) {
	namespace(t)
	loopbackUp(t, 1280)
	for _, listen := range []netip.AddrPort{loopback4, loopback6} {
		tx, rx := openUDP(t, UDPConfig{Listen: listen}), openUDP(t, UDPConfig{Listen: listen})
		for _, size := range []int{0, 1300} {
			if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, 1300)}, size); !errors.Is(err, ErrMessageSize) {
				t.Errorf("%v: 1300 bytes through an MTU of 1280: %v", listen, err)
			}
		}
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, 3900)}, 1300); !errors.Is(err, ErrMessageSize) {
			t.Errorf("%v: a train of such: %v", listen, err)
		}
		if o := tx.Offloads(); o.Refused != 0 || tx.Drops() != 5 {
			t.Errorf("%v: %v, %d drops; want no refusal and 5", listen, o, tx.Drops())
		}
		if err := tx.Send(0, rx.LocalAddr(), 0, [][]byte{make([]byte, 2000)}, 1000); err != nil {
			t.Errorf("%v: then a train that fits: %v", listen, err)
		}
		box := newMailbox(rx, 1)
		box.next(t)
		box.next(t)
	}
}

func TestUDP_aMissingRouteIsNotTheEnd(t *testing.T) {
	namespace(t)
	u := openUDP(t, UDPConfig{Listen: netip.MustParseAddrPort("0.0.0.0:0")})
	to := netip.AddrPortFrom(loopback4.Addr(), u.LocalAddr().Port())
	if err := u.Send(0, to, 0, [][]byte{make([]byte, 300)}, 100); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("without a route: %v", err)
	}
	if o := u.Offloads(); u.Drops() != 3 || o.Refused != 0 {
		t.Errorf("%d drops, %v", u.Drops(), o)
	}
	loopbackUp(t, 65536)
	if err := u.Send(0, to, 0, [][]byte{make([]byte, 300)}, 100); err != nil {
		t.Errorf("with a route: %v", err)
	}
	box := newMailbox(u, 1)
	for range 3 {
		box.next(t)
	}
}

func TestUDP_dropsRatherThanWaits(t *testing.T) {
	namespace(t)
	slow := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "weft-h3-a"}, PeerName: "weft-h3-b"}
	if err := netlink.LinkAdd(slow); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName("weft-h3-a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := netlink.LinkByName("weft-h3-b")
	if err != nil {
		t.Fatal(err)
	}
	peer := netip.MustParseAddrPort("10.9.0.2:9")
	hardware := net.HardwareAddr{2, 0, 0, 0, 0, 2}
	const rate = 100_000 // bytes/s: next to nothing leaves
	for _, err := range []error{
		netlink.AddrAdd(l, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.9.0.1/24"))}),
		netlink.LinkSetUp(l),
		netlink.LinkSetUp(other),
		netlink.NeighAdd(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: peer.Addr().AsSlice(), HardwareAddr: hardware}),
		netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
			Rate:       rate, Limit: 1 << 30, Buffer: netlink.Xmittime(rate, 1<<16),
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u := openUDP(t, UDPConfig{Listen: netip.MustParseAddrPort("10.9.0.1:0")})
	setOption(t, u, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<17)
	const trains, each = 50, 40
	for range trains {
		if err := u.Send(0, peer, 0, [][]byte{make([]byte, each*1000)}, 1000); err != nil {
			t.Fatalf("a full buffer: %v", err)
		}
	}
	d := u.Drops()
	if d == 0 || d >= trains*each || d%each != 0 {
		t.Errorf("%d datagrams dropped of %d", d, trains*each)
	}
	if o := u.Offloads(); o.Refused != 0 {
		t.Errorf("a full buffer was taken for a refusal: %v", o)
	}
}
