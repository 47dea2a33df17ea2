package kernel

import (
	"encoding/binary"
	"fmt"
	"io/fs"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// GenlHeader is struct genlmsghdr of linux/genetlink.h. nl.Genlmsg (netlink v1.3.1)
// has only its first two bytes, and sends the kernel two of whatever lies behind
// it in memory.
type GenlHeader struct{ Command, Version uint8 }

// Len implements nl.NetlinkRequestData.
func (GenlHeader) Len() int { return 4 }

// Serialize implements nl.NetlinkRequestData.
func (h GenlHeader) Serialize() []byte { return []byte{h.Command, h.Version, 0, 0} }

// GenlCall makes a generic netlink request in the network namespace of the calling
// thread, and returns the answers behind their headers.
func GenlCall(family uint16, h GenlHeader, attrs ...*nl.RtAttr) ([][]byte, error) {
	req := nl.NewNetlinkRequest(int(family), unix.NLM_F_ACK)
	req.AddData(h)
	for _, a := range attrs {
		req.AddData(a)
	}
	answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
	for i, b := range answers {
		answers[i] = b[min(len(b), h.Len()):]
	}
	return answers, err
}

// GenlFamily returns the number of a generic netlink family; fs.ErrNotExist if the
// kernel has none of that name.
func GenlFamily(name string) (uint16, error) {
	answers, err := GenlCall(nl.GENL_ID_CTRL, GenlHeader{nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION},
		nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if err != nil {
		return 0, err
	}
	for _, b := range answers {
		attrs, err := nl.ParseRouteAttr(b)
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if a.Attr.Type == nl.GENL_CTRL_ATTR_FAMILY_ID && len(a.Value) == 2 {
				return binary.NativeEndian.Uint16(a.Value), nil
			}
		}
	}
	return 0, fmt.Errorf("generic netlink family %s: %w", name, fs.ErrNotExist)
}
