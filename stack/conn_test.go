package stack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"weft/internal/slowtest"
)

// connect returns the two ends of a connection from a to b.
func connect(t testing.TB, a, b *Host) (from, to net.Conn) {
	t.Helper()
	l, err := b.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	from, err = a.DialContext(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return from, <-accepted
}

func TestConn_nettest(t *testing.T) {
	same := func(c net.Conn) net.Conn { return c }
	for _, c := range []struct {
		name   string
		tunnel bool
		self   bool // from a Host to itself
		adjust func(net.Conn) net.Conn
	}{
		{"device", false, false, same},
		{"device, to itself", false, true, same},
		{"tunnel", true, false, same},
		{"tunnel, to itself", true, true, same},
		{"small buffers and Nagle", false, false, func(c net.Conn) net.Conn {
			tcp := c.(TCPConn)
			if err := errors.Join(tcp.SetReadBuffer(1), tcp.SetWriteBuffer(1), tcp.SetNoDelay(false)); err != nil {
				t.Error(err)
			}
			return c
		}},
		{"as any connection", false, false, func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a, b *Host
			if c.tunnel {
				a, b = tunnelHosts(t, "presto", func(int, *Config) {})
			} else {
				w := newWire(t)
				a, b = newHost(t, w, addrA), newHost(t, w, addrB)
			}
			if c.self {
				b = a
			}
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, c2 = connect(t, a, b)
				return c.adjust(c1), c.adjust(c2), func() { c1.Close(); c2.Close() }, nil
			})
		})
	}
}

func TestConn_halfClose(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	if _, err := c1.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := c1.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c2); err != nil || string(got) != "question" {
		t.Fatalf("peer read %q, %v", got, err)
	}
	c2.Write([]byte("answer"))
	c2.Close()
	if got, err := io.ReadAll(c1); err != nil || string(got) != "answer" {
		t.Fatalf("read %q, %v after CloseWrite", got, err)
	}
}

func TestDialContext_errorsKeepTheirIdentity(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	newHost(t, w, addrB)
	ctx := context.Background()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	for _, c := range []struct {
		name, network, address string
		ctx                    context.Context
		want                   error
	}{
		{"closed port", "tcp", "10.3.1.131:9", ctx, syscall.ECONNREFUSED},
		{"canceled", "tcp", "10.3.1.131:9", canceled, context.Canceled},
		{"nobody answers in time", "tcp", "10.2.0.130:9", late, context.DeadlineExceeded},
		{"network", "sctp", "10.3.1.131:9", ctx, net.UnknownNetworkError("sctp")},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := a.DialContext(c.ctx, c.network, c.address)
			if err == nil {
				conn.Close()
				t.Fatal("no error")
			}
			var op *net.OpError
			if !errors.Is(err, c.want) || !errors.As(err, &op) || op.Op != "dial" {
				t.Errorf("error %#v %v, want a dial error that is %v", err, err, c.want)
			}
		})
	}
}

func TestListen_errorsKeepTheirIdentity(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	l, err := a.Listen("tcp", "10.0.0.130:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Listen("tcp", ":80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("port in use: %v", err)
	}
	if _, err := a.Listen("tcp", "10.9.9.9:80"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("somebody else's address: %v", err)
	}
	if _, err := a.Listen("udp", ":81"); err == nil {
		t.Error("Listen on udp succeeded")
	}
	l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(time.Millisecond))
	if _, err := l.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Accept past its deadline: %v", err)
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

func TestConn_errorsKeepTheirIdentity(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	c1, c2 := connect(t, a, b)
	c1.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := c1.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read past its deadline: %v", err)
	}
	c1.SetReadDeadline(time.Time{})
	c2.(tcpConn).abort()
	if _, err := c1.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read after a reset: %v", err)
	}
	c1.Close()
	if _, err := c1.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

func TestConn_keepsItsAddresses(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	local, remote := c1.LocalAddr().String(), c1.RemoteAddr().String()
	if c2.LocalAddr().String() != remote || c2.RemoteAddr().String() != local {
		t.Errorf("%v - %v at one end, %v - %v at the other", local, remote, c2.LocalAddr(), c2.RemoteAddr())
	}
	c2.(tcpConn).abort()
	_, err := c1.Read(make([]byte, 1))
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil || op.Addr.String() != remote {
		t.Errorf("a reset's error lost the address: %v", err)
	}
	c1.Close()
	if c1.LocalAddr().String() != local || c1.RemoteAddr().String() != remote {
		t.Errorf("after Close: %v - %v", c1.LocalAddr(), c1.RemoteAddr())
	}
	if err := c1.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetDeadline after Close: %v", err)
	}
}

func TestConnWrite_isNotInterleaved(t *testing.T) {
	slowtest.System(t)
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	const size = 12 << 20 // more than the buffers hold
	var writers sync.WaitGroup
	for _, b := range []byte("ab") {
		writers.Go(func() { c1.Write(bytes.Repeat([]byte{b}, size)) })
	}
	go func() {
		writers.Wait()
		c1.Close()
	}()
	got, err := io.ReadAll(c2)
	if err != nil || len(got) != 2*size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	switches := 0
	for i := 1; i < len(got); i++ {
		if got[i] != got[i-1] {
			switches++
		}
	}
	if switches != 1 {
		t.Errorf("the writers' bytes alternate %d times", switches)
	}
}

// A server may start again while connections of its port are in TIME-WAIT.
func TestListen_againAfterTimeWait(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	l, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	go a.DialContext(context.Background(), "tcp", "10.3.1.131:80")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close() // the server closes first
	l.Close()
	again, err := b.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Listen("tcp", ":80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("two listeners on a port: %v", err)
	}
	again.Close()
}

func TestPacketConn_datagrams(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	server, err := b.ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	client, err := a.DialContext(context.Background(), "udp", "10.3.1.131:53")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, from, err := server.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "ping" || from.String() != client.LocalAddr().String() {
		t.Fatalf("server read %q from %v, %v", buf[:n], from, err)
	}
	if _, err := server.WriteTo([]byte("pong"), from); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(buf); err != nil || string(buf[:n]) != "pong" {
		t.Fatalf("client read %q, %v", buf[:n], err)
	}
	// Larger than the MTU: fragmented, and whole again at the other end.
	big := make([]byte, 5000)
	server.SetReadDeadline(time.Now().Add(time.Minute))
	client.Write(big)
	if n, _, err := server.ReadFrom(make([]byte, 6000)); n != len(big) || err != nil {
		t.Errorf("datagram of %d bytes arrived with %d, %v", len(big), n, err)
	}
	if _, err := server.WriteTo(nil, &net.TCPAddr{}); err == nil {
		t.Error("WriteTo a TCP address succeeded")
	}
	server.SetReadDeadline(time.Now())
	if _, _, err := server.ReadFrom(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ReadFrom past its deadline: %v", err)
	}
}

func TestPacketConn_refused(t *testing.T) {
	w := newWire(t)
	a := newHost(t, w, addrA)
	newHost(t, w, addrB)
	c, err := a.DialContext(context.Background(), "udp", "10.3.1.131:9")
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("anyone?"))
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Read after a port unreachable: %v", err)
	}
}

func TestHostClose_unblocksEverything(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	c1, c2 := connect(t, a, b)
	l, _ := a.Listen("tcp", ":80")
	u, _ := a.ListenPacket("udp", ":80")
	errs := make(chan error, 5)
	go func() { _, err := c1.Read(make([]byte, 1)); errs <- err }()
	go func() {
		for {
			if _, err := c1.Write(make([]byte, 1<<20)); err != nil {
				errs <- err
				return
			}
		}
	}()
	go func() { _, err := l.Accept(); errs <- err }()
	go func() { _, _, err := u.ReadFrom(make([]byte, 1)); errs <- err }()
	go func() { // nobody is there to answer
		_, err := a.DialContext(context.Background(), "tcp", "10.2.0.130:9")
		errs <- err
	}()
	time.Sleep(50 * time.Millisecond)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for range cap(errs) {
		select {
		case err := <-errs:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call ended with %v, want net.ErrClosed", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a call is still blocked after Close")
		}
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := a.DialContext(context.Background(), "tcp", "10.3.1.131:9"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
	if _, err := a.Listen("tcp", ":80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Listen after Close: %v", err)
	}
	if _, err := c2.Read(make([]byte, 1<<20)); err == io.EOF {
		t.Error("the peer of a Host that closed read a clean end")
	}
}

func TestHostClose_leaksNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWire(t)
	for range 20 {
		a, b := newHost(t, w, addrA), newHost(t, w, addrB)
		c1, c2 := connect(t, a, b)
		go c1.Write(make([]byte, 1<<16))
		c2.Read(make([]byte, 1<<16))
		a.Close()
		b.Close()
	}
	w.stop()
	for range 100 {
		if runtime.NumGoroutine() <= before+2 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
}
