package hostsetup

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostprog"
	"weft/internal/kernel/kerneltest"
	"weft/internal/qcn"
)

// Connections that a run has left limited when it was killed are free after the clean-up, and
// after what a start does whatever is configured; not while a daemon runs.
func TestLeftPaced_isFreed(t *testing.T) {
	ns := hostNamespace(t, "paced")
	kerneltest.Shell(t, ns, "ip link set lo up")
	in(t, ns, func() error {
		conn, highest, err := connection(t)
		if err != nil {
			return err
		}
		for what, free := range map[string]func() (string, error){
			"the clean-up": func() (string, error) {
				removed, err := Cleanup()
				return strings.Join(removed, ", "), err
			},
			"the start": func() (string, error) {
				n, err := FreeLeftPaced()
				return count(n, "limited connection"), err
			},
		} {
			p, err := hostprog.OpenPacer() // and nobody walks with it again, as after a crash
			if err != nil {
				return err
			}
			if err := errors.Join(p.Limit(conn, 100_000), p.Walk()); err != nil {
				return err
			}
			lock, err := TakeLock()
			if err != nil {
				return err
			}
			if _, err := free(); err == nil || highest() > 100_000 {
				t.Errorf("%s while a daemon runs: %v, limited to %d", what, err, highest())
			}
			lock.Release()
			for _, want := range []string{"1 limited connection", ""} {
				did, err := free()
				if err != nil || did != want || highest() != 1<<32-1 {
					t.Errorf("%s: %q, %v, want %q; limited to %d", what, did, err, want, highest())
				}
			}
			if err := p.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// connection returns one within the namespace, and what says its SO_MAX_PACING_RATE.
func connection(t *testing.T) (flow qcn.Flow, highest func() uint32, err error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return flow, nil, err
	}
	c, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		return flow, nil, errors.Join(err, l.Close())
	}
	t.Cleanup(func() { c.Close(); l.Close() })
	address := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	raw, err := c.SyscallConn()
	return qcn.Flow{Local: address(c.LocalAddr()), Remote: address(c.RemoteAddr())}, func() (rate uint32) {
		raw.Control(func(fd uintptr) {
			n, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
			rate = uint32(n)
		})
		return rate
	}, err
}
