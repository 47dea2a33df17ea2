package link

import (
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The test's own namespace has near0, 10.7.0.1; the other end of the cable is
// far0, 10.7.0.2, in a namespace of its own. Behind the near end, by a TUN, are
// 10.8.0.0/24 and fd08::/64. The far kernel has no route back: nobody would read
// its answers, and they would fill the TUN's queue.
var (
	near4, far4 = netip.MustParseAddr("10.7.0.1"), netip.MustParseAddr("10.7.0.2")
	near6, far6 = netip.MustParseAddr("fd07::1"), netip.MustParseAddr("fd07::2")
	behind4     = netip.MustParseAddr("10.8.0.9")
	behind6     = netip.MustParseAddr("fd08::9")
	behindNets  = []netip.Prefix{netip.MustParsePrefix("10.8.0.0/24"), netip.MustParsePrefix("fd08::/64")}
)

const (
	nearIndex       = 900
	ethtoolTSO      = unix.ETHTOOL_STSO
	ethtoolChecksum = unix.ETHTOOL_STXCSUM
)

// cable is two namespaces joined by a veth.
type cable struct{ work chan func() }

func newCable(t testing.TB) *cable {
	t.Helper()
	inNamespace(t, "1")
	writeSysctl(t, "net/ipv6/conf/all/forwarding", "1")
	c := &cable{work: make(chan func())}
	ns := make(chan netns.NsHandle)
	go c.far(ns)
	h := <-ns
	if !h.IsOpen() {
		t.Fatal("no second namespace")
	}
	t.Cleanup(func() {
		close(c.work)
		h.Close()
	})
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near0", Index: nearIndex}, PeerName: "far0", PeerNamespace: netlink.NsFd(h)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	number(t, "near0", near4, near6)
	c.do(func() { number(t, "far0", far4, far6) })
	c.settle(t)
	return c
}

// settle waits until both ends send. The kernel drops without a word what is sent while
// it still has to be told of the carrier, which a busy machine does late.
func (c *cable) settle(t testing.TB) {
	t.Helper()
	up := func(name string) bool {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Error(err)
			return true
		}
		return l.Attrs().OperState == netlink.OperUp
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var far bool
		c.do(func() { far = up("far0") })
		switch {
		case far && up("near0"):
			return
		case time.Now().After(end):
			t.Fatal("the cable has no carrier")
		}
	}
}

// far lives in the far namespace, which goes away with the thread.
func (c *cable) far(ns chan<- netns.NsHandle) {
	runtime.LockOSThread() // never unlocked
	h := netns.None()
	if unix.Unshare(unix.CLONE_NEWNET) == nil {
		h, _ = netns.Get()
	}
	ns <- h
	for f := range c.work {
		f()
	}
}

// do calls f in the far namespace.
func (c *cable) do(f func()) {
	done := make(chan struct{})
	c.work <- func() { defer close(done); f() }
	<-done
}

func number(t testing.TB, name string, addrs ...netip.Addr) {
	writeSysctl(t, "net/ipv6/conf/"+name+"/accept_dad", "0")
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Error(err)
		return
	}
	for _, a := range addrs {
		bits := 24
		if a.Is6() {
			bits = 64
		}
		addr := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, bits)), Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(l, addr); err != nil {
			t.Error(err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		t.Error(err)
	}
}

func writeSysctl(t testing.TB, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
		t.Error(err)
	}
}

// ethtool sets a feature of an interface, in the calling thread's namespace.
func ethtool(t testing.TB, name string, command, value uint32) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	v := struct{ command, value uint32 }{command, value}
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(req.name[:], name)
	req.data = unsafe.Pointer(&v)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		t.Fatal(errno)
	}
}

func (c *cable) openFar(t testing.TB, config PacketConfig) *Packet {
	t.Helper()
	var p *Packet
	config.Interface = "far0"
	c.do(func() { p = openPacketT(t, config) })
	if p == nil {
		t.FailNow()
	}
	return p
}

func (c *cable) openNear(t testing.TB, config PacketConfig) *Packet {
	t.Helper()
	config.Interface = "near0"
	p := openPacketT(t, config)
	if p == nil {
		t.FailNow()
	}
	return p
}

func openPacketT(t testing.TB, config PacketConfig) *Packet {
	p, err := OpenPacket(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// inNamespace moves the test to a network namespace of its own, which goes
// away with the test's thread.
func inNamespace(t testing.TB, forward string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: opens devices in network namespaces")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	writeSysctl(t, "net/ipv4/ip_forward", forward)
}

// unhang closes what is read if the caller does not end by itself, and returns
// what the caller is to defer. It measures nothing: a correct test never comes
// near it.
func unhang(c interface{ Close() error }) (stop func() bool) {
	return time.AfterFunc(time.Minute, func() { c.Close() }).Stop
}
