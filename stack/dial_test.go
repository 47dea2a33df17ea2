package stack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// resolveTo has the system's resolver find these addresses by any name, for one
// test.
func resolveTo(t *testing.T, addrs ...netip.Addr) {
	old := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = old })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerNames(far, addrs)
		return near, nil
	}}
}

// answerNames is a name server over a stream, whose messages have a length.
func answerNames(c net.Conn, addrs []netip.Addr) {
	defer c.Close()
	for {
		b := make([]byte, 2)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		b = make([]byte, int(b[0])<<8|int(b[1]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(b); err != nil {
			return
		}
		m.Response, m.Additionals = true, nil
		for _, a := range addrs {
			r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 1}}
			if a.Is4() {
				r.Header.Type, r.Body = dnsmessage.TypeA, &dnsmessage.AResource{A: a.As4()}
			} else {
				r.Header.Type, r.Body = dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: a.As16()}
			}
			if r.Header.Type == m.Questions[0].Type {
				m.Answers = append(m.Answers, r)
			}
		}
		b, err := m.AppendPack([]byte{0, 0})
		if err != nil {
			return
		}
		b[0], b[1] = byte((len(b)-2)>>8), byte(len(b)-2)
		c.Write(b)
	}
}

var noHost = netip.MustParseAddr("10.2.0.130") // in the topology, but no host

func TestDial_triesAllAddressesOfAName(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	other := newHost(t, w, netip.MustParseAddr("10.1.0.130")) // listens to nothing
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	third := newHost(t, w, netip.MustParseAddr("10.1.1.130")) // neither
	dial := func(timeout time.Duration, addrs ...netip.Addr) (net.Conn, error) {
		resolveTo(t, addrs...)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return a.DialContext(ctx, "tcp", "service.weft.test.:80")
	}

	t.Run("refused and then not", func(t *testing.T) {
		c, err := dial(30*time.Second, other.Address(), addrB)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := c.RemoteAddr().String(); got != l.Addr().String() {
			t.Errorf("connected to %s", got)
		}
	})
	t.Run("no answer within its share", func(t *testing.T) {
		c, err := dial(5*time.Second, noHost, addrB)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	})
	t.Run("all fail", func(t *testing.T) {
		_, err := dial(30*time.Second, third.Address(), other.Address())
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%v does not wrap ECONNREFUSED", err)
		}
		for _, want := range []string{third.Address().String(), other.Address().String()} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %s", err, want)
			}
		}
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" || op.Timeout() {
			t.Errorf("%#v", op)
		}
	})
	t.Run("time is up", func(t *testing.T) {
		_, err := dial(50*time.Millisecond, noHost, noHost)
		var timeout net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
	})
}

// A context that is canceled while nobody answers ends Dial, whatever is left to
// try.
func TestDial_endsWithItsContext(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	for _, network := range []string{"tcp", "tcp4"} {
		for _, address := range []string{"10.2.0.130:80", "service.weft.test.:80"} {
			resolveTo(t, noHost, noHost, noHost)
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(20*time.Millisecond, func() { cancel(io.ErrUnexpectedEOF) })
			_, err := a.DialContext(ctx, network, address)
			var op net.Error
			if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op) || op.Timeout() {
				t.Errorf("%s %s: %v, want context.Canceled alone", network, address, err)
			}
		}
	}
	blocked := make(chan struct{})
	defer close(blocked)
	old := net.DefaultResolver
	defer func() { net.DefaultResolver = old }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-blocked:
			return nil, io.EOF
		}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := a.DialContext(ctx, "tcp", "service.weft.test.:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("while the name is looked up: %v", err)
	}
}

func TestDial_toItself(t *testing.T) {
	w := newWire(t)
	under, _ := tunnelHosts(t, "presto", func(int, *Config) {})
	for name, h := range map[string]*Host{"device": newHost(t, w, addrA), "tunnel": under} {
		t.Run(name, func(t *testing.T) {
			c1, c2 := connect(t, h, h)
			defer c1.Close()
			defer c2.Close()
			c1.Write([]byte("hello"))
			if _, err := io.ReadFull(c2, make([]byte, 5)); err != nil {
				t.Error(err)
			}
			server, err := h.ListenPacket("udp", ":53")
			if err != nil {
				t.Fatal(err)
			}
			client, err := h.Dial("udp", server.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			client.Write([]byte("ping"))
			server.SetReadDeadline(time.Now().Add(time.Minute))
			b := make([]byte, 10)
			n, from, err := server.ReadFrom(b)
			if err != nil || string(b[:n]) != "ping" {
				t.Fatalf("%q, %v", b[:n], err)
			}
			if _, err := server.WriteTo([]byte("pong"), from); err != nil {
				t.Error(err)
			}
		})
	}
}
