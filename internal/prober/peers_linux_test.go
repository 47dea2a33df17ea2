package prober

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Peers of each family are found, those of IPv4 at a socket of IPv6, too; what never leaves
// the host is none.
func TestPeers(t *testing.T) {
	ns := kerneltest.Namespace(t, "peers")
	kerneltest.Shell(t, ns, `ip link set lo up
		for a in 192.0.2.1 192.0.2.7; do ip addr add $a/32 dev lo; done
		for a in 2001:db8::1 2001:db8::7; do ip -6 addr add $a/128 dev lo nodad; done`)
	err := kernel.InNamespace(ns, func() error {
		conns, err := openConnections()
		if err != nil {
			return err
		}
		defer conns.close()
		l, err := net.Listen("tcp", "[::]:0")
		if err != nil {
			return err
		}
		defer l.Close()
		port := uint16(l.Addr().(*net.TCPAddr).Port)
		for from, to := range map[string]string{"192.0.2.7": "192.0.2.1", "2001:db8::7": "2001:db8::1", "127.0.0.1": "127.0.0.2", "::1": "::1"} {
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
			dial := func() (net.Conn, error) {
				return d.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(to), port).String())
			}
			c, err := dial()
			// The kernel makes the local routes of IPv6 addresses a moment later.
			for end := time.Now().Add(kerneltest.Patience); errors.Is(err, unix.ENETUNREACH) && time.Now().Before(end); c, err = dial() {
				time.Sleep(time.Millisecond)
			}
			if err != nil {
				return err
			}
			defer c.Close()
		}
		for six, want := range map[bool][]string{false: {"192.0.2.1", "192.0.2.7"}, true: {"2001:db8::1", "2001:db8::7"}} {
			all, err := conns.peers(six)
			if err != nil {
				return err
			}
			var got []string
			for _, a := range slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) {
				got = append(got, a.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("IPv6 %v: %v, want %v", six, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
