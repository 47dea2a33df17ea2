package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// used counts the paths that have carried data: more than a connection's few packets
// without any.
func used(h *Host) (n int) {
	for _, p := range h.Stats().Paths {
		if p.Bytes > 20_000 {
			n++
		}
	}
	return n
}

// sendBy sends bytes over a connection that is dialled with a context.
func sendBy(t *testing.T, ctx context.Context, from, to *Host, size int) {
	t.Helper()
	l, err := to.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		n := int64(0)
		if c, err := l.Accept(); err == nil {
			c.SetDeadline(time.Now().Add(time.Minute))
			n, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		got <- n
	}()
	c, err := from.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	c.Close() // what follows, sent again or not, keeps to the policy
	if n := <-got; n != int64(size) {
		t.Errorf("%d bytes of %d arrived", n, size)
	}
}

// One connection is spread by what its context says, others by what the Host does.
func TestDialContext_withPolicy(t *testing.T) {
	for _, c := range []struct {
		own, given string
		paths      int
	}{{"ecmp", "", 1}, {"ecmp", "drb", 4}, {"ecmp", "presto", 4}, {"drb", "ecmp", 1}, {"presto", "drb", 4}} {
		w := newWire(t)
		a := newHost(t, w, addrA, func(k *Config) { k.Policy = c.own })
		b := newHost(t, w, addrB)
		ctx := context.Background()
		if c.given != "" {
			ctx = WithPolicy(ctx, c.given)
		}
		sendBy(t, ctx, a, b, 1<<20)
		if n := used(a); n != c.paths {
			t.Errorf("%s on a Host of %s: by %d paths, want %d: %+v", c.given, c.own, n, c.paths, a.Stats().Paths)
		}
	}
}

// What a prefix says counts for connections that are accepted, too.
func TestConfig_policies(t *testing.T) {
	for dst, paths := range map[string]int{"10.3.0.0/16": 4, "10.2.0.0/16": 1} {
		w := newWire(t)
		a := newHost(t, w, addrA, func(k *Config) {
			k.Policy, k.Policies = "ecmp", []PrefixPolicy{{netip.MustParsePrefix(dst), "rrb"}}
		})
		b := newHost(t, w, addrB)
		if !netip.MustParsePrefix("10.3.0.0/16").Contains(addrB) {
			t.Fatalf("%v", addrB)
		}
		l, err := a.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				c.Write(make([]byte, 1<<20))
				c.Close()
			}
		}()
		c, err := b.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		if n, err := io.Copy(io.Discard, c); n != 1<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		c.Close()
		if n := used(a); n != paths {
			t.Errorf("%s: by %d paths, want %d", dst, n, paths)
		}
	}
}

func TestDialContext_unknownPolicy(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	for _, network := range []string{"tcp", "udp"} {
		for _, name := range []string{"dbr", ""} {
			_, err := a.DialContext(WithPolicy(context.Background(), name), network, "10.3.1.131:80")
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" || !strings.Contains(err.Error(), "WithPolicy: policy") || !strings.Contains(err.Error(), "known: ecmp, rb") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

// Datagrams of a socket go by its policy where the Host sprays datagrams.
func TestDialContext_datagramsWithPolicy(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA, func(c *Config) { c.Policy, c.SprayDatagrams = "ecmp", true })
	if _, err := newHost(t, w, addrB).ListenPacket("udp", ":9"); err != nil { // or it would refuse them
		t.Fatal(err)
	}
	c, err := a.DialContext(WithPolicy(context.Background(), "rrb"), "udp", netip.AddrPortFrom(addrB, 9).String())
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range a.Stats().Paths {
		if p.Packets != 10 {
			t.Errorf("by %v %d packets of 40", p.Bounce, p.Packets)
		}
	}
}

// In a tunnel, too, a connection has its own policy.
func TestDialContext_withPolicyInATunnel(t *testing.T) {
	a, b := tunnelHosts(t, "ecmp", func(int, *Config) {})
	sendBy(t, WithPolicy(context.Background(), "drb"), a, b, 4<<20)
	if n := used(a); n != 8 {
		t.Errorf("by %d paths: %+v", n, a.Stats().Paths)
	}
}
