package lab

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// The path manager's events, linux/mptcp_pm.h.
const (
	mptcpEventEstablished = 2

	mptcpEventToken      = 1
	mptcpEventSource4    = 5
	mptcpEventTarget4    = 7
	mptcpEventTargetPort = 10
	mptcpEventFlags      = 13
	mptcpEventServer     = 18

	mptcpEventFlagServer = 1 << 1 // since Linux 6.18; before it has an attribute of its own
)

// mptcpConnection is a connection of IPv4 that this end has opened, and that may have further
// subflows.
type mptcpConnection struct {
	token    uint32
	from, to netip.Addr
	port     uint16 // of to
}

// parseMPTCPEvent reads an event, with its generic header. ok is false of all others than that a
// connection which this end has opened is established.
func parseMPTCPEvent(b []byte) (c mptcpConnection, ok bool) {
	const header = 4
	if len(b) < header || b[0] != mptcpEventEstablished {
		return c, false
	}
	attrs, err := kernel.ParseAttrs(b[header:])
	if err != nil {
		return c, false
	}
	token := false
	for _, a := range attrs {
		v := a.Value
		switch {
		case a.Attr.Type == mptcpEventToken && len(v) == 4:
			c.token, token = binary.NativeEndian.Uint32(v), true
		case a.Attr.Type == mptcpEventSource4 && len(v) == 4:
			c.from, _ = netip.AddrFromSlice(v)
		case a.Attr.Type == mptcpEventTarget4 && len(v) == 4:
			c.to, _ = netip.AddrFromSlice(v)
		case a.Attr.Type == mptcpEventTargetPort && len(v) == 2:
			c.port = binary.BigEndian.Uint16(v)
		case a.Attr.Type == mptcpEventServer && len(v) == 1 && v[0] != 0,
			a.Attr.Type == mptcpEventFlags && len(v) == 2 && binary.NativeEndian.Uint16(v)&mptcpEventFlagServer != 0:
			return c, false
		}
	}
	return c, token && c.from.IsValid() && c.to.IsValid() && c.port != 0
}

// subflowAttrs are those of a request for one more subflow. Its local port is any free one. All have
// one local ID, as the kernel has one for an address.
func (c mptcpConnection) subflowAttrs() []*nl.RtAttr {
	end := func(kind int, addr netip.Addr) *nl.RtAttr {
		a := nl.NewRtAttr(kind|unix.NLA_F_NESTED, nil)
		a.AddRtAttr(mptcpAddrFamily, nl.Uint16Attr(unix.AF_INET))
		a.AddRtAttr(mptcpAddr4, addr.AsSlice())
		return a
	}
	local, remote := end(mptcpAttrAddr, c.from), end(mptcpAttrRemote, c.to)
	local.AddRtAttr(mptcpAddrID, nl.Uint8Attr(1))
	remote.AddRtAttr(mptcpAddrPort, nl.Uint16Attr(c.port))
	return []*nl.RtAttr{local, nl.NewRtAttr(mptcpAttrToken, nl.Uint32Attr(c.token)), remote}
}
