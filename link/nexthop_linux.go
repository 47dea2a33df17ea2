package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/exitcode"
)

const (
	// resolveEvery is how long a change of the gateway's MAC address may go
	// unnoticed.
	resolveEvery = 5 * time.Second
	// resolveWait is how long the kernel asks before it gives up: three times
	// (mcast_solicit), a second apart (retrans_time_ms).
	resolveWait = 3 * time.Second
	resolvePoll = 5 * time.Millisecond
)

// uplink is an interface that a packet socket can be bound to.
type uplink struct {
	index int
	mtu   int
	mac   net.HardwareAddr
}

func findUplink(name string) (uplink, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return uplink{}, err
	}
	a := l.Attrs()
	if a.EncapType != "ether" || len(a.HardwareAddr) != 6 {
		return uplink{}, fmt.Errorf("the interface is not like Ethernet but %q: name another, or use a TUN", a.EncapType)
	}
	return uplink{index: a.Index, mtu: a.MTU, mac: a.HardwareAddr}, nil
}

// nextHop keeps the MAC address of the gateway up to date, as the kernel knows
// it. The kernel asks for the address (ARP, neighbour discovery). nextHop tells
// it that the address is in use, which it cannot see from a packet socket.
type nextHop struct {
	up      uplink
	gateway netip.Addr
	macs    atomic.Pointer[[12]byte] // the gateway's address and ours
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu     sync.Mutex
	handle *netlink.Handle // of the namespace of the socket; nil when closed
}

func findNextHop(up uplink, gateway netip.Addr) (*nextHop, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &nextHop{up: up, gateway: gateway.Unmap(), handle: handle, cancel: cancel}
	if err := n.resolve(); err != nil {
		n.close()
		return nil, err
	}
	n.ended.Go(func() { n.keep(ctx) })
	return n, nil
}

func (n *nextHop) close() {
	n.cancel()
	n.ended.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handle.Close()
	n.handle = nil
}

// keep looks from time to time whether the address has changed. If nobody
// answers it stays.
func (n *nextHop) keep(ctx context.Context) {
	tick := time.NewTicker(resolveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// What goes wrong here goes wrong again, and resolve tells it.
			_, _ = n.look()
		}
	}
}

// resolve waits until the kernel knows the address.
func (n *nextHop) resolve() error {
	for deadline := time.Now().Add(resolveWait); ; time.Sleep(resolvePoll) {
		found, err := n.look()
		if found || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("gateway %v does not answer: is it a neighbour on this interface, and up?", n.gateway)
		}
	}
}

// Neighbour entries in the first states have a usable address; in the second ones
// the administrator has set it.
const (
	usable = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | static
	static = unix.NUD_PERMANENT | unix.NUD_NOARP
)

// look takes the address over from the kernel's table, and tells the kernel that
// it is in use.
func (n *nextHop) look() (found bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.handle == nil {
		return false, net.ErrClosed
	}
	ip := n.gateway.AsSlice()
	family := unix.AF_INET
	if n.gateway.Is6() {
		family = unix.AF_INET6
	}
	list, err := n.handle.NeighList(n.up.index, family)
	// The kernel may have changed the table meanwhile: what there is will do.
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return false, fmt.Errorf("list neighbours: %w", err)
	}
	for _, e := range list {
		if !e.IP.Equal(ip) || e.State&usable == 0 || len(e.HardwareAddr) != 6 {
			continue
		}
		n.set(e.HardwareAddr)
		if e.State&static != 0 {
			return true, nil // "in use" would make it an entry like others
		}
		found = true
	}
	use := &netlink.Neigh{LinkIndex: n.up.index, Family: family, IP: ip, Flags: netlink.NTF_USE}
	switch err := n.handle.NeighSet(use); {
	case err == nil || found: // a process that has given up its privileges makes do with what the kernel knows
		return found, nil
	case errors.Is(err, unix.EPERM):
		return false, exitcode.AsAbsent(fmt.Errorf("no CAP_NET_ADMIN to make the kernel ask for the MAC address of gateway %v: give the program the capability, or ping the gateway first: %w", n.gateway, err))
	default:
		return false, fmt.Errorf("ask for the MAC address of gateway %v: %w", n.gateway, err)
	}
}

func (n *nextHop) set(gateway net.HardwareAddr) {
	var macs [12]byte
	copy(macs[:], gateway)
	copy(macs[6:], n.up.mac)
	if old := n.macs.Load(); old == nil || *old != macs {
		n.macs.Store(&macs)
	}
}
