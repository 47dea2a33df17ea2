package stack

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"weft/third_party/netstack/tcp"
)

func TestTCPConn_copies(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	sent := make([]byte, 3<<20+1)
	rand.NewChaCha8([32]byte{1}).Read(sent)
	go func() {
		// As io.Copy does it for a reader that has nothing but Read.
		n, err := c1.(io.ReaderFrom).ReadFrom(struct{ io.Reader }{bytes.NewReader(sent)})
		if n != int64(len(sent)) || err != nil {
			t.Errorf("ReadFrom: %d, %v", n, err)
		}
		c1.Close()
	}()
	var got bytes.Buffer
	n, err := c2.(io.WriterTo).WriteTo(struct{ io.Writer }{&got})
	if n != int64(len(sent)) || err != nil {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	if !bytes.Equal(got.Bytes(), sent) {
		t.Error("the bytes arrived changed")
	}
}

// An echo server copies a connection to itself.
func TestTCPConn_copiesToItself(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	go func() {
		io.Copy(c2, c2)
		c2.Close()
	}()
	for range 100 { // each is answered at once, not when a buffer is full
		c1.Write([]byte("hello"))
		if _, err := io.ReadFull(c1, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	c1.(TCPConn).CloseWrite()
	if n, err := c1.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errDevice }
func (failing) Write([]byte) (int, error) { return 0, errDevice }

func TestTCPConn_copyErrorsKeepTheirIdentity(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	if _, err := c1.(TCPConn).ReadFrom(failing{}); !errors.Is(err, errDevice) {
		t.Errorf("ReadFrom what fails: %v", err)
	}
	c1.Write([]byte("x"))
	if _, err := c2.(TCPConn).WriteTo(failing{}); !errors.Is(err, errDevice) {
		t.Errorf("WriteTo what fails: %v", err)
	}
	c1.Close()
	if _, err := c1.(TCPConn).ReadFrom(bytes.NewReader(make([]byte, 1))); !errors.Is(err, net.ErrClosed) {
		t.Errorf("ReadFrom after Close: %v", err)
	}
	if _, err := c1.(TCPConn).WriteTo(io.Discard); !errors.Is(err, net.ErrClosed) {
		t.Errorf("WriteTo after Close: %v", err)
	}
}

// The buffer of a copy, of 64 KiB, is taken from the last one.
func TestTCPConn_copyRecyclesItsBuffer(t *testing.T) {
	if raced {
		t.Skip("the race detector makes a sync.Pool forget")
	}
	w, a, b := newVirtual(t, 1)
	c1, _ := virtualConnect(t, w, a, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 1000
	for range n { // of a reader that has nothing
		c1.(io.ReaderFrom).ReadFrom(bytes.NewReader(nil))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > copyBuffer/16 {
		t.Errorf("%d bytes allocated a copy", each)
	}
}

func TestTCPConn_lingerOfZeroResets(t *testing.T) {
	w := newWire(t)
	a, b := newHost(t, w, addrA), newHost(t, w, addrB)
	for _, c := range []struct {
		seconds int
		want    error
	}{{-1, io.EOF}, {5, io.EOF}, {0, syscall.ECONNRESET}} {
		c1, c2 := connect(t, a, b)
		if err := c1.(TCPConn).SetLinger(c.seconds); err != nil {
			t.Fatal(err)
		}
		c1.Close()
		if _, err := c2.Read(make([]byte, 1)); !errors.Is(err, c.want) {
			t.Errorf("SetLinger(%d): the peer read %v, want %v", c.seconds, err, c.want)
		}
		c2.Close()
	}
}

// Of small pieces, Nagle's algorithm sends the first, and the others together
// when that is acknowledged.
func TestTCPConn_noDelay(t *testing.T) {
	for _, c := range []struct {
		noDelay bool
		want    int // packets with data before the first acknowledgement
	}{{true, 5}, {false, 1}} {
		w, a, b := newVirtual(t, 1)
		c1, c2 := virtualConnect(t, w, a, b)
		if err := errors.Join(c1.(TCPConn).SetNoDelay(false), c1.(TCPConn).SetNoDelay(c.noDelay)); err != nil {
			t.Fatal(err)
		}
		before := len(w.sent[addrA])
		for range 5 {
			c1.Write([]byte("piece"))
		}
		if n := len(w.sent[addrA]) - before; n != c.want {
			t.Errorf("no delay %v: %d packets, want %d", c.noDelay, n, c.want)
		}
		w.Run(time.Second)
		if n, _ := c2.Read(make([]byte, 100)); n != 25 {
			t.Errorf("no delay %v: %d bytes arrived", c.noDelay, n)
		}
	}
}

func TestTCPConn_bufferSizes(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c1, _ := virtualConnect(t, w, a, b)
	for _, c := range []struct{ set, want int }{
		{64 << 10, 64 << 10}, {-1, bufferMin}, {0, bufferMin}, {1 << 30, bufferMax},
	} {
		if err := errors.Join(c1.(TCPConn).SetReadBuffer(c.set), c1.(TCPConn).SetWriteBuffer(c.set)); err != nil {
			t.Fatal(err)
		}
		o := c1.(tcpConn).ep.SocketOptions()
		if r, s := o.GetReceiveBufferSize(), o.GetSendBufferSize(); r != int64(c.want) || s != int64(c.want) {
			t.Errorf("SetReadBuffer and SetWriteBuffer of %d: %d and %d", c.set, r, s)
		}
	}
	c1.(TCPConn).SetWriteBuffer(10_000)
	if n, err := c1.Write(make([]byte, 50_000)); n != 10_000 || !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("a send buffer of 10,000 bytes took %d, %v", n, err)
	}
}

func TestTCPConn_optionsAfterClose(t *testing.T) {
	w, a, b := newVirtual(t, 1)
	c1, _ := virtualConnect(t, w, a, b)
	c1.Close()
	c := c1.(TCPConn)
	for name, err := range map[string]error{
		"SetKeepAlive": c.SetKeepAlive(true), "SetKeepAlivePeriod": c.SetKeepAlivePeriod(time.Second),
		"SetKeepAliveConfig": c.SetKeepAliveConfig(net.KeepAliveConfig{}), "SetNoDelay": c.SetNoDelay(true),
		"SetLinger": c.SetLinger(0), "SetReadBuffer": c.SetReadBuffer(1), "SetWriteBuffer": c.SetWriteBuffer(1),
		"CloseRead": c.CloseRead(), "CloseWrite": c.CloseWrite(),
	} {
		var op *net.OpError
		if !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Netstack's endpoint of a connection has the defaults of package net.
func TestTCPConn_keepAliveDefaults(t *testing.T) {
	w := newWire(t)
	c1, c2 := connect(t, newHost(t, w, addrA), newHost(t, w, addrB))
	for _, c := range []net.Conn{c1, c2} {
		ep := c.(tcpConn).ep.(*tcp.Endpoint)
		var idle tcpip.KeepaliveIdleOption
		var interval tcpip.KeepaliveIntervalOption
		if err := ep.GetSockOpt(&idle); err != nil {
			t.Fatal(err)
		}
		if err := ep.GetSockOpt(&interval); err != nil {
			t.Fatal(err)
		}
		count, err := ep.GetSockOptInt(tcpip.KeepaliveCountOption)
		if err != nil {
			t.Fatal(err)
		}
		if on := ep.SocketOptions().GetKeepAlive(); !on || time.Duration(idle) != 15*time.Second || time.Duration(interval) != 15*time.Second || count != 9 {
			t.Errorf("on %v, idle %v, interval %v, count %d", on, time.Duration(idle), time.Duration(interval), count)
		}
	}
}
