package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

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
	return genlCall(nil, family, h, attrs...)
}

// GenlSocket makes requests in the network namespace in which it was opened, whatever thread calls.
type GenlSocket struct{ sockets map[int]*nl.SocketHandle }

// OpenGenl opens a socket in the network namespace of the calling thread.
func OpenGenl() (*GenlSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, err
	}
	if err := s.SetReceiveTimeout(&nl.SocketTimeoutTv); err != nil {
		s.Close()
		return nil, err
	}
	return &GenlSocket{map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: s}}}, nil
}

// Call is GenlCall in the socket's namespace.
func (s *GenlSocket) Call(family uint16, h GenlHeader, attrs ...*nl.RtAttr) ([][]byte, error) {
	return genlCall(s.sockets, family, h, attrs...)
}

// Close closes the socket.
func (s *GenlSocket) Close() { s.sockets[unix.NETLINK_GENERIC].Socket.Close() }

func genlCall(on map[int]*nl.SocketHandle, family uint16, h GenlHeader, attrs ...*nl.RtAttr) ([][]byte, error) {
	req := nl.NewNetlinkRequest(int(family), unix.NLM_F_ACK)
	req.Sockets = on
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

// ParseAttrs reads a list of attributes, whatever its bytes are. nl.ParseRouteAttr (netlink v1.3.1)
// panics if the last one is not padded to 4 bytes.
func ParseAttrs(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	if pad := -len(b) & (unix.NLA_ALIGNTO - 1); pad > 0 {
		b = append(slices.Clone(b), make([]byte, pad)...)
	}
	return nl.ParseRouteAttr(b)
}

// GenlFamily returns the number of a generic netlink family; fs.ErrNotExist if the
// kernel has none of that name.
func GenlFamily(name string) (uint16, error) {
	attrs, err := genlFamily(name)
	if err != nil {
		return 0, err
	}
	for _, a := range attrs {
		if a.Attr.Type == nl.GENL_CTRL_ATTR_FAMILY_ID && len(a.Value) == 2 {
			return binary.NativeEndian.Uint16(a.Value), nil
		}
	}
	return 0, fmt.Errorf("generic netlink family %s: %w", name, fs.ErrNotExist)
}

// genlFamily asks for all that the kernel says about a family.
func genlFamily(name string) (all []syscall.NetlinkRouteAttr, err error) {
	answers, err := GenlCall(nl.GENL_ID_CTRL, GenlHeader{nl.GENL_CTRL_CMD_GETFAMILY, nl.GENL_CTRL_VERSION},
		nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if err != nil {
		return nil, err
	}
	for _, b := range answers {
		attrs, err := ParseAttrs(b)
		if err != nil {
			return nil, err
		}
		all = append(all, attrs...)
	}
	return all, nil
}

// GenlEvents opens a socket in the network namespace of the calling thread, at which a family's
// events of a group arrive; fs.ErrNotExist if the family has no such group.
func GenlEvents(family, group string) (*nl.NetlinkSocket, error) {
	attrs, err := genlFamily(family)
	if err != nil {
		return nil, err
	}
	for _, a := range attrs {
		if a.Attr.Type&^unix.NLA_F_NESTED != nl.GENL_CTRL_ATTR_MCAST_GROUPS {
			continue
		}
		id, err := genlGroup(a.Value, group)
		if err != nil || id == 0 {
			return nil, errors.Join(err, fmt.Errorf("generic netlink family %s: group %s: %w", family, group, fs.ErrNotExist))
		}
		s, err := nl.Subscribe(unix.NETLINK_GENERIC)
		if err != nil {
			return nil, err
		}
		if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(id)); err != nil {
			s.Close()
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("generic netlink family %s: groups: %w", family, fs.ErrNotExist)
}

// genlGroup finds a group's number in the list of a family's groups, 0 if it is not there.
func genlGroup(list []byte, name string) (id uint32, err error) {
	groups, err := ParseAttrs(list)
	if err != nil {
		return 0, err
	}
	for _, g := range groups {
		attrs, err := ParseAttrs(g.Value)
		if err != nil {
			return 0, err
		}
		named := false
		var number uint32
		for _, a := range attrs {
			switch {
			case a.Attr.Type == nl.GENL_CTRL_ATTR_MCAST_GRP_NAME:
				named = unix.ByteSliceToString(a.Value) == name
			case a.Attr.Type == nl.GENL_CTRL_ATTR_MCAST_GRP_ID && len(a.Value) == 4:
				number = binary.NativeEndian.Uint32(a.Value)
			}
		}
		if named {
			return number, nil
		}
	}
	return 0, nil
}
