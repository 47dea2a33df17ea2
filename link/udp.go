package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// DefaultUDPPaths is the default number of source ports of a UDP underlay. Plain ECMP
// hashes them: 32 ports use nearly all of a handful of paths.
const DefaultUDPPaths = 32

const (
	maxUDPPaths = 256 // what the 8 bits of the wire format can name

	// maxTrain is the kernel's bound on the datagrams of a train
	// (UDP_MAX_SEGMENTS in linux/udp.h; later kernels take 128), maxTrainBytes
	// IPv4's on their bytes together.
	maxTrain      = 64
	maxTrainBytes = 65535 - 20 - 8
)

// TrainBytes is how many bytes of datagrams of size bytes each leave in one call of the
// kernel's, headers aside.
func TrainBytes(size int) int { return min(maxTrain, maxTrainBytes/size) * size }

// ErrMessageSize says that a datagram is longer than the MTU of its path, by
// configuration or by a router's message. The rest of the call was not sent.
var ErrMessageSize = errors.New("udp: datagram longer than the path's MTU, and it must not be fragmented: lower the MTU in the configuration, or raise the network's")

// UDPConfig says how to open a UDP underlay.
type UDPConfig struct {
	// Listen is the address on which datagrams are received. Port 0 lets the system
	// choose. An unspecified address means all addresses of its family. All peers must be
	// of that family.
	Listen netip.AddrPort
	// Paths is how many source ports are used, at most 256; 0 means
	// DefaultUDPPaths.
	Paths int
	// MTU is the longest outer IP packet in bytes, from 576 (1280 over IPv6) to
	// 65535; 0 means DefaultMTU.
	MTU int
	// ZeroChecksum sends an outer UDP checksum of 0, and accepts that over IPv6 (RFC
	// 6935) under the conditions of encap.CheckZeroChecksum. It helps with NICs that
	// cannot compute the checksum. Elsewhere it costs: Linux refuses to segment such
	// datagrams.
	ZeroChecksum bool
}

func (c *UDPConfig) validate() error {
	if c.Paths == 0 {
		c.Paths = DefaultUDPPaths
	}
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	c.Listen = netip.AddrPortFrom(c.Listen.Addr().Unmap(), c.Listen.Port())
	least := 576 // what every host must accept in one piece (RFC 791)
	if c.Listen.Addr().Is6() {
		least = minMTU6
	}
	switch {
	case !c.Listen.Addr().IsValid():
		return errors.New("udp: Listen has no address: 0.0.0.0:0 or [::]:0 stand for any")
	case c.Paths < 0 || c.Paths > maxUDPPaths:
		return fmt.Errorf("udp: Paths is %d, must be from 1 to %d", c.Paths, maxUDPPaths)
	case c.MTU < least || c.MTU > 65535:
		return fmt.Errorf("udp: MTU is %d bytes, must be from %d to 65535", c.MTU, least)
	}
	return nil
}

// maxPayload is the longest datagram's payload, in bytes.
func (c *UDPConfig) maxPayload() int {
	if c.Listen.Addr().Is6() {
		return c.MTU - 40 - 8
	}
	return c.MTU - 20 - 8
}

// listenUDP opens a socket, of IPv4 or IPv6 alone as the address is.
func listenUDP(at netip.AddrPort) (*net.UDPConn, error) {
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	return conn, nil
}

// localAddr returns the address to which a socket is bound.
func localAddr(conn *net.UDPConn) netip.AddrPort {
	a := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// checkTo reports whether a peer can be reached from a socket bound to local.
func checkTo(to, local netip.AddrPort) error {
	switch {
	case to.Addr().Is4() != local.Addr().Is4():
		return fmt.Errorf("udp: peer %v and Listen address %v are of different families: give the peer an address of the other one, or listen there", to, local)
	case to.Addr().Zone() != "":
		return fmt.Errorf("udp: peer %v has a zone: give it a global address", to)
	}
	return nil
}

// UDPOffloads says what a UDP underlay got from the system.
type UDPOffloads struct {
	// Segment: a train is sent by one call (UDP_SEGMENT).
	Segment bool
	// GRO: a train is received by one call (UDP_GRO).
	GRO bool
	// ECN: the outer TOS byte is sent and received. Otherwise it is 0 in both directions.
	// Packets must then not leave with an outer field that says ECT, since the receiver
	// could not follow RFC 6040 §4.2.
	ECN bool
	// ZeroChecksum: the outer checksum is left out.
	ZeroChecksum bool
	// ReceiveBuffer is the size of the socket's buffer in bytes of kernel
	// memory, about twice the bytes that fit; 0 if unknown.
	ReceiveBuffer int
	// Refused counts the trains that the kernel refused at run time. At the first,
	// Segment becomes false for good.
	Refused uint64
	// Fallback says why there is less than was asked for; "" if nothing is missing.
	Fallback string
}

// String describes o in one line.
func (o UDPOffloads) String() string {
	var has []string
	for _, f := range []struct {
		got  bool
		name string
	}{{o.Segment, "segment"}, {o.GRO, "gro"}, {o.ECN, "ecn"}, {o.ZeroChecksum, "zero-checksum"}} {
		if f.got {
			has = append(has, f.name)
		}
	}
	if has == nil {
		has = []string{"no offloads"}
	}
	s := "udp: " + strings.Join(has, " ")
	if o.ReceiveBuffer > 0 {
		s += fmt.Sprintf(", receive buffer %d KiB", o.ReceiveBuffer>>10)
	}
	if o.Refused > 0 {
		s += fmt.Sprintf(", %d trains refused", o.Refused)
	}
	if o.Fallback != "" {
		s += " (" + o.Fallback + ")"
	}
	return s
}
