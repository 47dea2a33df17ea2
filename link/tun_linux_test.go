package link

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	embedded = netip.MustParsePrefix("10.0.0.130/32")
	kernel   = netip.MustParsePrefix("10.0.0.2/32")
)

func openTUN(t *testing.T, c TUNConfig) *TUN {
	t.Helper()
	tun, err := OpenTUN(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tun.Close() })
	return tun
}

func TestOpenTUN_configuresTheInterface(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{Name: "weft7", Address: kernel, Routes: []netip.Prefix{embedded}, MTU: 1400, Overhead: 20})
	if tun.Name() != "weft7" || tun.MTU() != 1400 {
		t.Errorf("%s, MTU %d", tun.Name(), tun.MTU())
	}
	l, err := netlink.LinkByName("weft7")
	if err != nil {
		t.Fatal(err)
	}
	if a := l.Attrs(); a.MTU != 1380 || a.Flags&net.FlagUp == 0 {
		t.Errorf("MTU %d, flags %v; want 1380 (less the overhead) and up", a.MTU, a.Flags)
	}
	routes, err := netlink.RouteGet(embedded.Addr().AsSlice())
	if err != nil || len(routes) != 1 || routes[0].LinkIndex != l.Attrs().Index {
		t.Errorf("route to %v: %v, %v", embedded, routes, err)
	}
}

func TestTUN_carriesPacketsBothWays(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{Address: kernel, Routes: []netip.Prefix{embedded}})
	conn, err := net.Dial("udp4", "10.0.0.130:9") // by the kernel, into the TUN
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range []string{"one", "two", "three"} {
		if _, err := conn.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	const offset = 10
	bufs, sizes := make([][]byte, 8), make([]int, 8)
	for i := range bufs {
		bufs[i] = make([]byte, offset+1500)
	}
	var got []string
	for len(got) < 3 {
		n, err := tun.Read(bufs, sizes, offset)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if b := bufs[i][offset : offset+sizes[i]]; b[0]>>4 == 4 && b[9] == unix.IPPROTO_UDP {
				got = append(got, string(b[28:]))
			}
		}
	}
	if strings.Join(got, " ") != "one two three" {
		t.Errorf("read %q", got)
	}
	// An echo request to the kernel, and its answer.
	ping := []byte{
		0x45, 0, 0, 28, 0, 1, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 130, 10, 0, 0, 2,
		8, 0, 0xf7, 0xfd, 0, 1, 0, 1,
	}
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(ping[i])<<8 | uint32(ping[i+1])
	}
	sum = sum>>16 + sum&0xffff
	ping[10], ping[11] = byte(^sum>>8), byte(^sum)
	if n, err := tun.Write([][]byte{append(make([]byte, offset), ping...)}, offset); n != 1 || err != nil {
		t.Fatalf("Write: %d, %v", n, err)
	}
	for {
		n, err := tun.Read(bufs, sizes, offset)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if b := bufs[i][offset : offset+sizes[i]]; b[0]>>4 == 4 && b[9] == unix.IPPROTO_ICMP {
				if !bytes.Equal(b[12:16], kernel.Addr().AsSlice()) || b[20] != 0 {
					t.Errorf("not an echo reply of %v: % x", kernel.Addr(), b)
				}
				return
			}
		}
	}
}

func TestTUNClose_unblocksRead(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{})
	ended := make(chan error)
	go func() {
		buf, size := [][]byte{make([]byte, 1500)}, make([]int, 1)
		for {
			if _, err := tun.Read(buf, size, 0); err != nil {
				ended <- err
				return
			}
		}
	}()
	if err := tun.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if err := tun.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := tun.Write([][]byte{{0x45}}, 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

func TestTUNWrite_countsWhatTheKernelRefuses(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{})
	if n, err := tun.Write([][]byte{{}, {0x00}, nil}, 0); n != 0 || err != nil || tun.Drops() != 3 {
		t.Errorf("Write of nonsense: %d, %v, %d drops", n, err, tun.Drops())
	}
}

func TestOpenTUN_saysWhatIsMissing(t *testing.T) {
	t.Run("forwarding", func(t *testing.T) {
		inNamespace(t, "0")
		wantError(t, TUNConfig{}, "sysctl -w net.ipv4.ip_forward=1")
	})
	t.Run("name in use", func(t *testing.T) {
		inNamespace(t, "1")
		openTUN(t, TUNConfig{Name: "weft0"})
		wantError(t, TUNConfig{Name: "weft0"}, "weft0 is in use")
		wantError(t, TUNConfig{Name: "weft0", Offload: true}, "weft0 is in use")
	})
	t.Run("name in use, many queues", func(t *testing.T) {
		inNamespace(t, "1")
		openTUN(t, TUNConfig{Name: "weft0", Queues: 2})
		wantError(t, TUNConfig{Name: "weft0", Queues: 2}, "weft0 is in use")
	})
	t.Run("forwarding of IPv6", func(t *testing.T) {
		inNamespace(t, "1")
		routes := []netip.Prefix{netip.MustParsePrefix("fd08::/64")}
		wantError(t, TUNConfig{Routes: routes}, "sysctl -w net.ipv6.conf.all.forwarding=1")
		openTUN(t, TUNConfig{Routes: routes, NoForwardCheck: true})
	})
	t.Run("address in use", func(t *testing.T) {
		inNamespace(t, "1")
		openTUN(t, TUNConfig{Routes: []netip.Prefix{embedded}})
		wantError(t, TUNConfig{Routes: []netip.Prefix{embedded}}, "is another weft using this address")
	})
	t.Run("capability", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root has it")
		}
		if _, err := os.Stat("/dev/net/tun"); err != nil {
			t.Skip(err)
		}
		wantError(t, TUNConfig{}, "CAP_NET_ADMIN")
	})
	t.Run("device", func(t *testing.T) {
		if err := openError("", os.ErrNotExist); !strings.Contains(err.Error(), "no /dev/net/tun") {
			t.Error(err)
		}
	})
}

func TestOpenTUN_rejectsBadConfig(t *testing.T) {
	wantError(t, TUNConfig{Name: "an-interface-with-a-long-name"}, "Name")
	wantError(t, TUNConfig{MTU: 80, Overhead: 20}, "MTU is 80 bytes, must be from 88")
	wantError(t, TUNConfig{MTU: 70000}, "MTU")
	wantError(t, TUNConfig{Overhead: -1}, "Overhead")
	wantError(t, TUNConfig{Queues: -1}, "Queues is -1")
	wantError(t, TUNConfig{Queues: 256}, "Queues is 256")
	wantError(t, TUNConfig{Address: netip.MustParsePrefix("fd08::1/64"), MTU: 1299, Overhead: 20}, "at least 1300")
}

func wantError(t *testing.T, c TUNConfig, text string) {
	t.Helper()
	tun, err := OpenTUN(c)
	if err == nil {
		tun.Close()
		t.Fatalf("no error, want one with %q", text)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error %q does not say %q", err, text)
	}
}
