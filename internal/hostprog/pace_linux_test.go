package hostprog

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// stream is a connection of the kernel's TCP within a namespace that sends as fast as it can.
type stream struct {
	*net.TCPConn
	key PaceKey
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
	t.Cleanup(func() { out.Close(); in.Close() })
	go io.Copy(io.Discard, in)
	address := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return stream{out, PaceKey{address(out.LocalAddr()), address(out.RemoteAddr())}}
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

// A connection that is limited sends no faster; others are not touched. The Pacer says what is
// in flight. Afterwards it has its own rate again, or that which its program had set.
func TestPacer_limitsAConnection(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		s, other, own := newStream(t), newStream(t), newStream(t)
		own.option(t, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 500_000)
		})
		const rate = 2_000_000
		must(p.Limit(s.key, rate), p.Limit(own.key, rate), p.Watch(other.key), p.Walk())
		if got := s.highest(t); got > rate || got < rate-2048 {
			t.Errorf("limited to %d, want %d", got, rate)
		}
		if got := own.highest(t); got != 500_000 {
			t.Errorf("the program wants 500000, and got %d", got)
		}
		if got := other.highest(t); got != 1<<32-1 {
			t.Errorf("a connection that is only watched is limited to %d", got)
		}
		go s.send()
		go other.send()
		time.Sleep(100 * time.Millisecond)
		must(p.Walk())
		before, ok := p.Look(s.key)
		start := time.Now()
		time.Sleep(time.Second)
		must(p.Walk())
		after, ok2 := p.Look(s.key)
		free, ok3 := p.Look(other.key)
		elapsed := time.Since(start).Seconds()
		if got := float64(after.Sent-before.Sent) / elapsed; !ok || !ok2 || got > 1.3*rate || got == 0 {
			t.Errorf("%.0f bytes/s are sent, limit %d; %+v, %+v", got, rate, before, after)
		}
		if !ok3 || free.Sent < 10*after.Sent {
			t.Errorf("the free connection has sent %+v, the limited one %+v", free, after)
		}
		if flight := after.Next - after.Una; flight > 1<<24 {
			t.Errorf("%d bytes in flight", flight)
		}
		must(p.Limit(own.key, 100_000), p.Walk())
		if got := own.highest(t); got > 100_000 {
			t.Errorf("%d", got)
		}
		must(p.Keep(func(k PaceKey) bool { return k == other.key }))
		if s, o := s.highest(t), own.highest(t); s != 1<<32-1 || o != 500_000 {
			t.Errorf("%d and %d afterwards", s, o)
		}
		if _, ok := p.Look(s.key); ok {
			t.Error("a forgotten connection is known")
		}
		must(p.Limit(s.key, rate), p.Walk(), p.Close())
		if got := s.highest(t); got != 1<<32-1 {
			t.Errorf("%d after Close", got)
		}
	})
}

// What a run that was killed has left limited, the next one frees. It takes over what was
// loaded before privileges were dropped.
func TestPacer_leastCapabilities(t *testing.T) {
	inNewNamespace(t, func() {
		first, err := OpenPacer()
		must(err)
		s, own := newStream(t), newStream(t)
		own.option(t, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1_000_000)
		})
		must(first.Limit(s.key, 50_000), first.Walk(), first.close()) // as a crash does
		if got := s.highest(t); got > 50_000 {
			t.Errorf("%d", got)
		}
		variable, err := KeepPacer()
		must(err)
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
		must(kerneltest.WithCapabilities(func() error {
			p, err := OpenPacer()
			if err != nil {
				return err
			}
			if s, o := s.highest(t), own.highest(t); s != 1<<32-1 || o != 1_000_000 {
				t.Errorf("%d and %d after the start", s, o)
			}
			err = errors.Join(p.Limit(s.key, 70_000), p.Walk())
			if got := s.highest(t); got > 70_000 {
				t.Errorf("%d", got)
			}
			return errors.Join(err, p.Close())
		}, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF))
		if got := s.highest(t); got != 1<<32-1 {
			t.Errorf("%d afterwards", got)
		}
	})
}

// Connections that end are gone from the next Walk; no more than MaxPaced are taken.
func TestPacer_isBounded(t *testing.T) {
	inNewNamespace(t, func() {
		p, err := OpenPacer()
		must(err)
		defer p.Close()
		s := newStream(t)
		must(p.Watch(s.key), p.Walk())
		if _, ok := p.Look(s.key); !ok {
			t.Error("it is not seen")
		}
		must(s.SetLinger(0), s.Close(), p.Walk())
		if _, ok := p.Look(s.key); ok {
			t.Error("a connection that has ended is seen")
		}
		for port := range MaxPaced - 1 {
			must(p.Watch(PaceKey{s.key.Local, netip.AddrPortFrom(s.key.Remote.Addr(), uint16(1+port))}))
		}
		if err := p.Watch(PaceKey{s.key.Remote, s.key.Local}); err == nil {
			t.Error("one too many is taken")
		}
		must(p.Keep(func(PaceKey) bool { return false }), p.Watch(PaceKey{s.key.Remote, s.key.Local}))
	})
}
