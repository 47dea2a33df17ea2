package congestion

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

func mustRegister(t *testing.T) *Registration {
	t.Helper()
	kerneltest.NeedRoot(t)
	r, err := Register()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// The congestion control is there until the last of its users closes it, one of which was
// begun anew meanwhile. A connection goes on with it.
func TestRegister_lastsAsLongAsItsUsers(t *testing.T) {
	first := mustRegister(t)
	second := mustRegister(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Check(Name); err != nil {
		t.Fatalf("one of two is closed: %v", err)
	}
	env, err := second.Leave()
	if err != nil {
		t.Fatal(err)
	}
	name, fd, _ := strings.Cut(env, "=")
	t.Setenv(name, fd)
	taken := Take()
	if taken == nil || Take() != nil {
		t.Fatal("what was left is not taken, once")
	}
	defer taken.Close()
	from, to := connection(t)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	// Tests of other packages may have a part in it.
	kerneltest.Within(t, 2*kerneltest.Patience, "it is gone", func() bool { return Check(Name) != nil })
	go from.Write(make([]byte, 1<<20))
	if n, err := io.CopyN(io.Discard, to, 1<<20); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := controlOf(t, from); got != Name {
		t.Errorf("the connection goes on by %s", got)
	}
}

// connection is one of which both ends ask for the congestion control.
func connection(t *testing.T) (from, to net.Conn) {
	t.Helper()
	ask := func(_, _ string, c syscall.RawConn) (err error) {
		c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, Name)
		})
		return err
	}
	l, err := (&net.ListenConfig{Control: ask}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if from, err = (&net.Dialer{Control: ask}).Dial("tcp4", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close() })
	if to, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.Close() })
	return from, to
}

func controlOf(t *testing.T, c net.Conn) (name string) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(name, "\x00")
}

func TestRegister_leastCapabilities(t *testing.T) {
	ns := kerneltest.Namespace(t, "cc")
	all := map[string]int{"CAP_BPF": unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN}
	register := func() error {
		r, err := Register()
		if err != nil {
			return err
		}
		return r.Close()
	}
	for _, without := range []string{"", "CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"} {
		var caps []int
		for name, number := range all {
			if name != without {
				caps = append(caps, number)
			}
		}
		err := kernel.InNamespace(ns, func() error { return kerneltest.WithCapabilities(register, caps...) })
		if without == "" && err != nil || without != "" && (err == nil || !strings.Contains(err.Error(), "no "+without)) {
			t.Errorf("without %q: %v", without, err)
		}
	}
}

func TestCheck(t *testing.T) {
	kerneltest.NeedRoot(t)
	if err := Check("reno"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "nosuch", "a_name_that_is_too_long"} {
		if err := Check(name); err == nil || !strings.Contains(err.Error(), "reno") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
