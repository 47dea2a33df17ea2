package prober

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// connections asks the kernel for TCP connections (sock_diag(7)), in the network namespace
// where it was opened. It asks for those that are established alone, unlike package
// netlink: the kernel need not walk its listeners then.
type connections struct{ socket *nl.SocketHandle }

func openConnections() (connections, error) {
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_INET_DIAG)
	return connections{&nl.SocketHandle{Socket: s}}, err
}

func (c connections) close() { c.socket.Close() }

// established is the kernel's TCP_ESTABLISHED (linux/tcp_states.h).
const established = 1

// diagRequest is struct inet_diag_req_v2 without the identity of a socket, which is 48 bytes
// of zeros.
type diagRequest struct{ family uint8 }

func (r diagRequest) Len() int { return 56 }

func (r diagRequest) Serialize() []byte {
	b := make([]byte, r.Len())
	b[0], b[1] = r.family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], 1<<established)
	return b
}

// peers returns the addresses of a family to which the kernel has TCP connections, each
// once. Those that the fabric cannot have, such as loopback's and link-local ones, are left
// out.
func (c connections) peers(six bool) (map[netip.Addr]bool, error) {
	families := []uint8{unix.AF_INET6}
	if !six {
		families = append(families, unix.AF_INET) // a socket of IPv6 may have a peer of IPv4, too
	}
	all := make(map[netip.Addr]bool)
	for _, family := range families {
		req := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
		req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_INET_DIAG: c.socket}
		req.AddData(diagRequest{family})
		err := req.ExecuteIter(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(msg []byte) bool {
			if a := peerOf(msg); a.Is6() == six && a.IsGlobalUnicast() {
				all[a] = true
			}
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("list of TCP connections (kernel option INET_DIAG): %w", err)
		}
	}
	return all, nil
}

// peerOf returns the other end of a connection from struct inet_diag_msg.
func peerOf(msg []byte) netip.Addr {
	const at = 24
	switch {
	case len(msg) < at+16:
		return netip.Addr{}
	case msg[0] == unix.AF_INET:
		return netip.AddrFrom4([4]byte(msg[at:]))
	}
	return netip.AddrFrom16([16]byte(msg[at:])).Unmap()
}

// lookEvery is how often it is told with whom the kernel has connections.
const lookEvery = 500 * time.Millisecond

// lookAround tells the watcher to whom there is traffic. While the kernel opens and closes no
// connections, it is not asked for all of them: those of before still are.
func (p *Prober) lookAround() {
	var known []netip.Addr
	for {
		began := time.Now()
		if p.opened.changed(began) {
			if all, err := p.kernel.peers(p.self.Is6()); err == nil {
				known = slices.Collect(maps.Keys(all))
			} else {
				p.opened.late = time.Time{} // look again at the next turn
			}
		}
		took := time.Since(began)
		if len(known) > 0 {
			p.lookout.Active(known...)
		}
		select {
		case <-p.stop:
			return
		case <-time.After(max(lookEvery, 20*took)): // a hundred thousand connections take a while
		}
	}
}
