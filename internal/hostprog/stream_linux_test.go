package hostprog

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/qcn"
)

// stream is a connection of the kernel's TCP within a namespace that sends as fast as it can.
type stream struct {
	*net.TCPConn
	key qcn.Flow
}

func newStream(t *testing.T) stream {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	defer l.Close()
	out, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	must(err)
	in, err := l.Accept()
	must(err)
	return connected(t, out, in)
}

// newMappedStream is a newStream whose sender is a socket of IPv6: ::ffff:127.0.0.1.
func newMappedStream(t *testing.T) stream {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{})
	must(err)
	defer l.Close()
	in, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.Addr().(*net.TCPAddr).Port})
	must(err)
	out, err := l.AcceptTCP()
	must(err)
	return connected(t, out, in)
}

func connected(t *testing.T, out *net.TCPConn, in net.Conn) stream {
	t.Helper()
	t.Cleanup(func() { out.Close(); in.Close() })
	go io.Copy(io.Discard, in)
	address := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return stream{out, qcn.Flow{Local: address(out.LocalAddr()), Remote: address(out.RemoteAddr())}}
}

func (s stream) send() {
	for b := make([]byte, 1<<16); ; {
		if _, err := s.Write(b); err != nil {
			return
		}
	}
}

// highest is the socket's SO_MAX_PACING_RATE.
func (s stream) highest(t *testing.T) uint32 {
	t.Helper()
	return uint32(s.option(t, func(fd int) (int, error) { return unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE) }))
}

func (s stream) option(t *testing.T, do func(fd int) (int, error)) (n int) {
	t.Helper()
	raw, err := s.SyscallConn()
	if err == nil {
		err = errors.Join(err, raw.Control(func(fd uintptr) {
			var e error
			if n, e = do(int(fd)); e != nil {
				t.Error(e)
			}
		}))
	}
	must(err)
	return n
}

func (s stream) info(t *testing.T) (info *unix.TCPInfo) {
	t.Helper()
	s.option(t, func(fd int) (_ int, err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return 0, err
	})
	return info
}

func inNewNamespace(t *testing.T, f func()) {
	t.Helper()
	ns := kerneltest.Namespace(t, "pace")
	kerneltest.Shell(t, ns, "ip link set lo up")
	err := kernel.InNamespace(ns, func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(error)
			}
		}()
		f()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// must ends what inNewNamespace runs, which is in a goroutine of its own.
func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}
