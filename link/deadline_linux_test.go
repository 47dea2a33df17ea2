package link

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// A Read returns at its deadline, or at once after it, and goes on with a later one.
func checkDeadline(t *testing.T, set func(time.Time) error, read func() (int, error), send func()) {
	t.Helper()
	for range 2 {
		if err := set(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, err := read()
			for n > 0 && err == nil { // what the kernel sends by itself
				n, err = read()
			}
			if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if err := set(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		send()
		if n, err := read(); n == 0 || err != nil {
			t.Fatalf("after it: %d, %v", n, err)
		}
	}
}

func TestTUN_readDeadline(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{Address: kernel, Routes: []netip.Prefix{embedded}})
	bufs, sizes := buffers(1, 2000)
	checkDeadline(t, tun.SetReadDeadline, func() (int, error) { return tun.Read(bufs, sizes, 0) }, func() { dialUDP(t, "10.0.0.130:9") })
}

func TestUDP_readDeadline(t *testing.T) {
	u := openUDP(t, UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 1, MTU: 1500})
	bufs, sizes := buffers(1, 2000)
	segs, tos, from := make([]int, 1), make([]byte, 1), make([]netip.AddrPort, 1)
	checkDeadline(t, u.SetReadDeadline, func() (int, error) { return u.Receive(bufs, sizes, segs, tos, from) }, func() { dialUDP(t, u.LocalAddr().String()) })
}

func TestPacket_readDeadline(t *testing.T) {
	c := newCable(t)
	p := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing})
	bufs, sizes := buffers(1, 2000)
	if err := p.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(bufs, sizes, 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v", n, err)
	}
}

// dialUDP sends a datagram.
func dialUDP(t *testing.T, to string) {
	t.Helper()
	conn, err := net.Dial("udp4", to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}
