package stack

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// udpConn is a UDP socket, connected or not.
type udpConn struct{ *socket }

var (
	_ net.Conn       = udpConn{}
	_ net.PacketConn = udpConn{}
)

func (c udpConn) Read(b []byte) (int, error) {
	n, _, err := c.ReadFrom(b)
	return n, err
}

// ReadFrom reads one datagram; what does not fit in b is lost.
func (c udpConn) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	var remote tcpip.FullAddress
	if b == nil {
		b = []byte{} // netstack refuses nil
	}
	err = c.wait(waiter.ReadableEvents, &c.read, func() tcpip.Error {
		w := tcpip.SliceWriter(b)
		r, err := c.ep.Read(&w, tcpip.ReadOptions{NeedRemoteAddr: true})
		n, remote = r.Count, r.RemoteAddr
		return err
	})
	if err == io.EOF { // only Close ends a UDP socket
		err = net.ErrClosed
	}
	if err != nil {
		return 0, nil, c.opError("read", err)
	}
	return n, netAddr("udp", addrPort(remote)), nil
}

func (c udpConn) Write(b []byte) (int, error) {
	return c.send(b, tcpip.WriteOptions{}, c.RemoteAddr())
}

// WriteTo sends one datagram. addr must be a *net.UDPAddr with an address of a family that
// the socket has.
func (c udpConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	u, ok := addr.(*net.UDPAddr)
	if !ok || !c.reaches(u.AddrPort().Addr().Unmap()) {
		family := "IPv4"
		if c.local.Addr().Is6() {
			family = "IPv6"
		}
		return 0, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: addr,
			Err: &net.AddrError{Err: "not an " + family + " UDP address", Addr: addrString(addr)}}
	}
	if c.RemoteAddr() != nil {
		return 0, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: addr, Err: syscall.EISCONN}
	}
	to := fullAddress(netip.AddrPortFrom(u.AddrPort().Addr().Unmap(), uint16(u.Port)))
	return c.send(b, tcpip.WriteOptions{To: &to}, addr)
}

// reaches reports whether a socket may send to an address: one of its own family, or of
// either.
func (c udpConn) reaches(a netip.Addr) bool {
	return a.IsValid() && (c.both || a.Is4() == c.local.Addr().Is4())
}

func (c udpConn) send(b []byte, o tcpip.WriteOptions, to net.Addr) (n int, err error) {
	var r bytes.Reader
	err = c.wait(waiter.WritableEvents, &c.write, func() tcpip.Error {
		r.Reset(b)
		k, err := c.ep.Write(&r, o)
		n = int(k)
		return err
	})
	if err != nil {
		return 0, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: to, Err: err}
	}
	return n, nil
}

func addrString(a net.Addr) string {
	if a == nil {
		return ""
	}
	return a.String()
}
