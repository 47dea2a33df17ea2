package fabric

import (
	"encoding/binary"
	"fmt"
	"io/fs"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// genlHeader is struct genlmsghdr of linux/genetlink.h. nl.Genlmsg (netlink v1.3.1)
// has only its first two bytes, and sends the kernel two of whatever lies behind
// it in memory.
type genlHeader struct{ command, version uint8 }

// Len implements nl.NetlinkRequestData.
func (genlHeader) Len() int { return 4 }

// Serialize implements nl.NetlinkRequestData.
func (h genlHeader) Serialize() []byte { return []byte{h.command, h.version, 0, 0} }

// genlCall makes a generic netlink request in the network namespace of the calling
// thread, and returns the answers behind their headers.
func genlCall(family uint16, h genlHeader, attrs ...*nl.RtAttr) ([][]byte, error) {
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

// genlFamily returns the number of a generic netlink family; fs.ErrNotExist if the
// kernel has none of that name.
func genlFamily(name string) (uint16, error) {
	answers, err := genlCall(nl.GENL_ID_CTRL, genlHeader{nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION},
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
