package stack

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// deadAfter is how long after the last packet a connection that nobody answers
// ends, to a second; 0 if it does not within an hour.
func deadAfter(w *virtualWire, c net.Conn) (time.Duration, error) {
	w.drop = func([]byte) bool { return true }
	for began := w.Now(); w.Now()-began < time.Hour; w.Run(time.Second) {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.EAGAIN) {
			return w.Now() - began, err
		}
	}
	return 0, nil
}

// The peer of an idle connection is gone without a word, and nobody writes.
func TestKeepAlive_endsReadFromDeadPeer(t *testing.T) {
	for _, c := range []struct {
		name     string
		accepted bool // the end that was accepted, not the one that dialled
		talked   bool // before
	}{{"dialled", false, false}, {"accepted", true, false}, {"dialled, after data", false, true}, {"accepted, after data", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := newVirtual(t, 1)
			c1, c2 := virtualConnect(t, w, a, b)
			if c.talked {
				for _, conn := range []net.Conn{c1, c2} {
					if _, err := conn.Write([]byte("hello")); err != nil {
						t.Fatal(err)
					}
				}
				w.Run(time.Second)
				c1.Read(make([]byte, 10))
				c2.Read(make([]byte, 10))
			}
			end := c1
			if c.accepted {
				end = c2
			}
			// 15 s idle, 9 probes, 15 s for each: as in package net.
			after, err := deadAfter(w, end)
			if after < 148*time.Second || after > 152*time.Second || !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("ended after %v with %v, want 150 s and ETIMEDOUT", after, err)
			}
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%v is no timeout", err)
			}
		})
	}
}

func TestKeepAlive_probesKeepALivePeer(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c1, c2 := virtualConnect(t, w, a, b)
	before := len(w.sent[addrA])
	w.Run(time.Hour)
	if n := len(w.sent[addrA]) - before; n < 2*200 || n > 2*260 {
		t.Errorf("%d packets in an idle hour, want a probe and an answer each 15 s", n)
	}
	if _, err := c1.Write([]byte("still there?")); err != nil {
		t.Error(err)
	}
	w.Run(2 * wireDelay)
	if n, err := c2.Read(make([]byte, 20)); n != 12 || err != nil {
		t.Errorf("%d bytes, %v after an idle hour", n, err)
	}
}

func TestSetKeepAlive(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(TCPConn) error
		want time.Duration // 0: never
	}{
		{"off", func(c TCPConn) error { return c.SetKeepAlive(false) }, 0},
		{"off and on", func(c TCPConn) error { return errors.Join(c.SetKeepAlive(false), c.SetKeepAlive(true)) }, 150 * time.Second},
		{"period", func(c TCPConn) error { return c.SetKeepAlivePeriod(100 * time.Second) }, 235 * time.Second},
		{"no period", func(c TCPConn) error { return c.SetKeepAlivePeriod(0) }, 150 * time.Second},
		{"config", func(c TCPConn) error {
			return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 5 * time.Second, Count: 4})
		}, 40 * time.Second},
		{"config left", func(c TCPConn) error {
			return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1})
		}, 150 * time.Second},
		{"config off", func(c TCPConn) error { return c.SetKeepAliveConfig(net.KeepAliveConfig{}) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := newVirtual(t, 1)
			c1, _ := virtualConnect(t, w, a, b)
			if err := c.set(c1.(TCPConn)); err != nil {
				t.Fatal(err)
			}
			if after, err := deadAfter(w, c1); max(after-c.want, c.want-after) > 2*time.Second {
				t.Errorf("ended after %v with %v, want %v", after, err, c.want)
			}
		})
	}
}
