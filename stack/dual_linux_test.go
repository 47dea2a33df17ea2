package stack

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/link"
	"weft/topology"
)

// The kernel's TCP and a Host's, over a TUN with super-segments: each cuts and merges what the
// other has made, by either family, and nothing changes.
func TestHost_talksToTheKernelByBothFamilies(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: opens a TUN in a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	address, kernel := fatTree.EmbeddedAddr(0), fatTree.Node(1).Addr // one rack: nobody encapsulates
	address6, kernel6 := topology.Addr6(address), topology.Addr6(kernel)
	tun, err := link.OpenTUN(link.TUNConfig{Name: "weft0", Address: netip.PrefixFrom(kernel, 32), Offload: true, NoForwardCheck: true,
		Routes: []netip.Prefix{netip.PrefixFrom(address, 32), netip.PrefixFrom(address6, 128)}})
	if err != nil {
		t.Skipf("no TUN: %v", err)
	}
	l, err := netlink.LinkByName("weft0")
	if err != nil {
		t.Fatal(err)
	}
	own := &netlink.Addr{IPNet: &net.IPNet{IP: kernel6.AsSlice(), Mask: net.CIDRMask(128, 128)}, Flags: unix.IFA_F_NODAD}
	if err := netlink.AddrAdd(l, own); err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	h, err := New(Config{Address: address, Address6: address6, Topology: fatTree, Device: tun, CarryIPv6: true, Simulation: Simulation{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	server, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 20e6)
	rand.NewChaCha8([32]byte{3}).Read(data)
	sum := sha256.Sum256(data)
	for _, to := range []netip.Addr{address, address6} {
		before := h.Stats()
		done := make(chan net.Conn, 1)
		go func() {
			c, err := server.Accept()
			if err != nil {
				t.Error(err)
				close(done)
				return
			}
			io.Copy(c, c)
			c.(TCPConn).CloseWrite()
			done <- c
		}()
		c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(netip.AddrPortFrom(to, 80)))
		if err != nil {
			t.Fatalf("%v: %v", to, err)
		}
		c.SetDeadline(time.Now().Add(60 * time.Second))
		go func() {
			c.Write(data)
			c.CloseWrite()
		}()
		got := sha256.New()
		if n, err := io.Copy(got, c); err != nil || n != int64(len(data)) || [32]byte(got.Sum(nil)) != sum {
			t.Fatalf("%v: %d bytes, %v", to, n, err)
		}
		if d := <-done; d == nil || d.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("%v: accepted from %v, dialled from %v", to, d.RemoteAddr(), c.LocalAddr())
		}
		c.Close()
		after := h.Stats()
		out, in := after.Egress.Supers-before.Egress.Supers, after.Ingress.Supers-before.Ingress.Supers
		if tun.MaxSuper() > 0 && (out < 100 || in < 100) || after.Ingress.BadChecksum+after.Ingress.Malformed+after.Egress.Malformed > 0 {
			t.Errorf("%v: %d super-segments out, %d in; %+v, %+v", to, out, in, after.Egress, after.Ingress)
		}
	}
}
