package wire

import (
	"bytes"
	"encoding/binary"
)

// link is what the kernel says about a device (rtnetlink(7), RTM_NEWLINK and
// RTM_DELLINK).
type link struct {
	index   int
	name    string
	up      bool   // administratively, and with a carrier
	losses  uint32 // how often it has lost the carrier; 0 where the kernel does not count
	removed bool
	address []byte // hardware address; valid during the call
}

// Lengths and numbers of linux/netlink.h, linux/rtnetlink.h and linux/if_link.h.
const (
	messageHeader = 16 // struct nlmsghdr
	linkHeader    = 16 // struct ifinfomsg
	attrHeader    = 4  // struct rtattr

	typeError   = 2 // NLMSG_ERROR
	typeDone    = 3 // NLMSG_DONE
	typeNewLink = 16
	typeDelLink = 17

	flagInterrupted = 0x10 // NLM_F_DUMP_INTR: the list has changed meanwhile

	attrAddress      = 1
	attrName         = 3
	attrCarrierDowns = 48

	flagUp      = 1 << 0  // IFF_UP
	flagRunning = 1 << 6  // IFF_RUNNING: the operational state is up
	flagLowerUp = 1 << 16 // IFF_LOWER_UP: there is a carrier
	carrier     = flagUp | flagRunning | flagLowerUp
)

// listener is told what netlink messages say.
type linkListener interface {
	link(link)
	listed(interrupted bool) // the answer to a request for all links is complete
	refused(errno int32)     // a request was
}

// parseLinks reads the messages of one datagram from the kernel. What is cut off
// ends it; what is unknown is passed over.
func parseLinks(b []byte, to linkListener) {
	for len(b) >= messageHeader {
		n := int(binary.NativeEndian.Uint32(b))
		if n < messageHeader || n > len(b) {
			return
		}
		kind := binary.NativeEndian.Uint16(b[4:])
		flags := binary.NativeEndian.Uint16(b[6:])
		body := b[messageHeader:n]
		switch kind {
		case typeNewLink, typeDelLink:
			if l, ok := parseLink(body); ok {
				l.removed = kind == typeDelLink
				to.link(l)
			}
		case typeDone:
			to.listed(flags&flagInterrupted != 0)
		case typeError:
			if len(body) >= 4 {
				to.refused(int32(binary.NativeEndian.Uint32(body)))
			}
		}
		b = b[min(aligned(n), len(b)):]
	}
}

// parseLink reads an ifinfomsg and its attributes. A message of another family
// than AF_UNSPEC is not about the device but about what it is to a bridge, say.
func parseLink(b []byte) (l link, ok bool) {
	if len(b) < linkHeader || b[0] != 0 {
		return l, false
	}
	l.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	l.up = binary.NativeEndian.Uint32(b[8:])&carrier == carrier
	for b = b[linkHeader:]; len(b) >= attrHeader; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < attrHeader || n > len(b) {
			break
		}
		value := b[attrHeader:n]
		switch binary.NativeEndian.Uint16(b[2:]) & 0x3FFF { // less NLA_F_NESTED and NLA_F_NET_BYTEORDER
		case attrName:
			name, _, _ := bytes.Cut(value, []byte{0})
			l.name = string(name)
		case attrAddress:
			l.address = value
		case attrCarrierDowns:
			if len(value) >= 4 {
				l.losses = binary.NativeEndian.Uint32(value)
			}
		}
		b = b[min(aligned(n), len(b)):]
	}
	return l, l.name != ""
}

// aligned is NLMSG_ALIGN and RTA_ALIGN.
func aligned(n int) int { return (n + 3) &^ 3 }
