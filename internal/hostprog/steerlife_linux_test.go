package hostprog

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// listen opens a TCP listener of the kernel's at near's address.
func (s *steerTest) listen(t *testing.T) net.Listener {
	t.Helper()
	var l net.Listener
	err := kernel.InNamespace(s.near, func() (err error) {
		l, err = net.Listen("tcp4", nearAddr+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (s *steerTest) dial(l net.Listener, timeout time.Duration) error {
	return kernel.InNamespace(s.far, func() error {
		conn, err := net.DialTimeout("tcp4", l.Addr().String(), timeout)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// As long as the reader lives the kernel does not see its TCP; when it is silent
// the kernel answers, and again when the program is gone.
func TestSteer_failsOpen(t *testing.T) {
	s := newSteerTest(t, []SteerRule{{netip.MustParseAddr(nearAddr), SteerTCP}})
	l := s.listen(t)
	if err := s.dial(l, 10*time.Second); err != nil {
		t.Errorf("before the first heartbeat: %v", err)
	}
	s.drain()
	before := s.stats(t)
	if before.Taken != 0 || before.PassedDead < 3 {
		t.Errorf("before the first heartbeat: %+v", before)
	}

	s.alive(t, true)
	if err := s.dial(l, 200*time.Millisecond); err == nil {
		t.Error("the kernel answered while the reader was alive")
	}
	if frame := s.read(t); frame[14+9] != 6 || frame[14+20+13] != 2 {
		t.Errorf("the reader got no SYN:\n%s", dump(frame))
	}
	if st := s.stats(t); st.Taken == 0 || st.PassedDead != before.PassedDead {
		t.Errorf("alive: %+v, before %+v", st, before)
	}

	s.alive(t, false)
	if err := s.dial(l, 10*time.Second); err != nil {
		t.Errorf("after the reader fell silent: %v", err)
	}
	if st := s.stats(t); st.PassedDead <= before.PassedDead {
		t.Errorf("silent: %+v, before %+v", st, before)
	}

	s.alive(t, true)
	if err := s.steer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.dial(l, 10*time.Second); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

// drain reads what the reader has got so far.
func (s *steerTest) drain() {
	b := make([]byte, 70000)
	for {
		if _, _, err := unix.Recvfrom(s.reader, b, unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}

// Beat by itself makes the reader alive.
func TestSteer_beat(t *testing.T) {
	s := newSteerTest(t, steered)
	frame := frameOf(steerPackets()[0].bytes)
	s.alive(t, false)
	if verdict, err := s.steer.at.Prog.Run(&ebpf.RunOptions{Data: frame}); err != nil || verdict != actUnspec {
		t.Errorf("dead: verdict %d, %v", verdict, err)
	}
	// A second between the two lines: try again.
	kerneltest.Within(t, kerneltest.Patience, "taken behind a heartbeat", func() bool {
		if err := s.steer.Beat(); err != nil {
			t.Fatal(err)
		}
		verdict, err := s.steer.at.Prog.Run(&ebpf.RunOptions{Data: frame})
		return err == nil && verdict == actShot
	})
	if n := testing.AllocsPerRun(10, func() { s.steer.Beat() }); n > 2 {
		t.Errorf("%v allocations a heartbeat", n)
	}
}

func TestSteer_replacedAndDetached(t *testing.T) {
	s := newSteerTest(t, steered)
	first := s.steer
	detach := func(want bool) {
		t.Helper()
		err := kernel.InNamespace(s.near, func() error {
			removed, err := DetachSteer("p0")
			if removed > 0 != want {
				t.Errorf("removed %v, want %v", removed, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	var second *Steer
	err := kernel.InNamespace(s.near, func() (err error) {
		second, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: steered[:1]})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	if _, err := first.Stats(); err != errSteerClosed || first.Beat() != errSteerClosed {
		t.Errorf("closed: %v", err)
	}
	second.release()
	detach(true)
	detach(false)
}

func TestAttachSteer_errorsSayWhatToDo(t *testing.T) {
	ns := kerneltest.Namespace(t, "errors")
	for _, c := range []struct {
		cfg  SteerConfig
		want string
	}{
		{SteerConfig{Uplink: "p0"}, "steer: Rules are 0"},
		{SteerConfig{Uplink: "p0", Rules: steered}, "steer: uplink p0: port p0: no such device"},
		{SteerConfig{Uplink: "lo", Rules: steered}, "an Ethernet device is needed"},
	} {
		err := kernel.InNamespace(ns, func() error {
			_, err := AttachSteer(c.cfg)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; does not say %q", err, c.want)
		}
	}
}
