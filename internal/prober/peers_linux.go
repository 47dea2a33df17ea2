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

// getSockets is TCPDIAG_GETSOCK (linux/inet_diag.h), whose answers have the same type. Unlike
// SOCK_DIAG_BY_FAMILY it is for both families at once: the kernel walks its table of
// sockets, of which most is empty, once.
const getSockets = 18

// diagRequest is struct inet_diag_req without the identity of a socket.
type diagRequest struct{}

func (diagRequest) Len() int { return 60 }

func (r diagRequest) Serialize() []byte {
	const states = 52
	b := make([]byte, r.Len())
	binary.NativeEndian.PutUint32(b[states:], 1<<established)
	return b
}

// peers returns the addresses of a family to which the kernel has TCP connections, each
// once. Those that the fabric cannot have, such as loopback's and link-local ones, are left
// out. A socket of IPv6 may have a peer of IPv4.
func (c connections) peers(six bool) (map[netip.Addr]bool, error) {
	all := make(map[netip.Addr]bool)
	req := nl.NewNetlinkRequest(getSockets, unix.NLM_F_DUMP)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_INET_DIAG: c.socket}
	req.AddData(diagRequest{})
	err := req.ExecuteIter(unix.NETLINK_INET_DIAG, getSockets, func(msg []byte) bool {
		if a := peerOf(msg); a.Is6() == six && a.IsGlobalUnicast() {
			all[a] = true
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list of TCP connections (kernel option INET_DIAG): %w", err)
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

// pause returns the time from the beginning of one look at all connections to the next, given how
// long the look took. A hundred thousand connections take tens of milliseconds. Looks take a
// hundredth of a processor; those that take longer than 20 ms take up to a tenth, so that a new
// destination, whose probes begin with the look that finds it, does not wait for more than 2 s.
func pause(took time.Duration) time.Duration {
	return min(100*took, max(2*time.Second, 10*took))
}

// lookAround tells the watcher to whom there is traffic. While the kernel opens and closes no
// connections, it is not asked for all of them: those of before still are. Nor is it
// during the pause after a look.
func (p *Prober) lookAround() {
	var known map[netip.Addr]bool
	var next time.Time
	for {
		if began := time.Now(); !began.Before(next) && p.opened.changed(began) {
			if all, err := p.kernel.peers(p.self.Is6()); err == nil {
				known = all
			} else {
				p.opened.late = time.Time{} // look again at the next turn
			}
			next = began.Add(pause(time.Since(began)))
		}
		active := slices.Collect(maps.Keys(known))
		if p.also != nil {
			active = append(active, further(known, p.also())...)
		}
		if len(active) > 0 {
			p.lookout.Active(active...)
		}
		select {
		case <-p.stop:
			return
		case <-time.After(lookEvery):
		}
	}
}

// mostFurther bounds the hosts that are probed only because this one forwards packets to them. It
// is half of what liveness.Config.MaxDestinations is by default: whatever containers send, the
// host's own traffic has its paths probed.
const mostFurther = 128

// further returns those of a list that are not known, at most mostFurther.
func further(known map[netip.Addr]bool, list []netip.Addr) (more []netip.Addr) {
	for _, a := range list {
		if len(more) == mostFurther {
			break
		}
		if !known[a] {
			more = append(more, a)
		}
	}
	return more
}
