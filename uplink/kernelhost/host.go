// Package kernelhost is a Host on the kernel's own TCP, for Go services with privileges: the
// same DialContext, Listen, ListenPacket and Close as a stack.Host, without netstack.
//
//	host, err := kernelhost.New(stack.Config{Address: addr, Topology: fabric, Policy: "presto",
//		Liveness: &stack.Liveness{}}, uplink.Options{})
//
// It runs in the process what weft host runs in mode offload with resequence: a program at the
// uplink sprays what the kernel sends, another restores the order of what arrives, of which
// only flows with a hole pass through the process, and one goroutine repairs. It is a package
// of its own since it links what weft host does; package uplink is smaller by half.
package kernelhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"weft/internal/daemon"
	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

// Host is an endpoint of the fabric as a stack.Host is, with the kernel's own TCP and
// UDP in place of netstack's. It is for services with privileges on hosts that have no weft
// host: a kernel's socket moves several times as much for each core. While it lives, all TCP
// that the kernel sends from Address takes the paths of Policy, that of other programs, too:
// it is weft host, in mode offload with resequence, in this process. It is safe for
// concurrent use.
type Host struct {
	// Control, if not nil, is called with each socket of DialContext, Listen and ListenPacket
	// before it connects or binds, as net.Dialer.Control is: some options, such as
	// TCP_CONGESTION, do not have their full effect later. Set it before the first call.
	Control func(network, address string, socket syscall.RawConn) error

	address, address6 netip.Addr
	below             embedded
	ctx               context.Context // done once it is closed
	stop              context.CancelFunc
	closing           sync.Once
	err               error // of closing

	mu      sync.Mutex
	sockets map[io.Closer]bool // that are open; nil once closed
}

// embedded is *daemon.Embedded.
type embedded interface {
	SetTopology(*topology.Topology) error
	stats() (Stats, error)
	Close() error
}

// New starts a Host in the network namespace of the calling thread, where all threads must be
// that call DialContext, Listen and ListenPacket. It returns when packets take paths, or, with
// Config.Liveness, begin to do so as probes prove the carrier to each rack.
//
// c is as for uplink.NewHost, but Address is that of this machine's kernel: 10.0.0.2, not
// EmbeddedAddr's 10.0.0.130. Address6 is the one of Topology6, and zero without that. New
// refuses what only netstack can do: Policies, WithPolicy, SprayDatagrams, CarryIPv6, TCP,
// Simulation, Device, Tunnel, PolicyOptions.LinkRateBits, Liveness.MinHold and MaxHold,
// Resequencer.Seed, and policies that the program at the uplink does not know
// (policy.NamesAtUplink). Receivers of flowcells must
// restore the order, as a stack.Host, weft host and this Host do; for others use drb.
//
// It needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and a writable /proc/sys/net and /run/weft. In a
// network namespace there is one such Host, weft host, or Device with programs. After an error
// nothing is left. What a crash leaves, the next one takes over, and weft host --cleanup
// removes.
func New(c stack.Config, o uplink.Options) (*Host, error) {
	if err := check(&c); err != nil {
		return nil, err
	}
	own, err := ownAddresses()
	if err != nil {
		return nil, err
	}
	for _, a := range []netip.Addr{c.Address, c.Address6} {
		if a.IsValid() && !own[a] {
			return nil, fmt.Errorf("kernelhost: Config address %v is not on this machine, as ip address shows: a kernelhost has the kernel's own; for an address beside it there is uplink.NewHost", a)
		}
	}
	e := daemon.EmbedConfig{Config: hostConfig(&c, o), Fabric: c.Topology, Fabric6: c.Topology6, Log: c.Log}
	below, err := embed(e)
	if err != nil {
		return nil, fmt.Errorf("kernelhost: %w", err)
	}
	h := &Host{address: c.Address, address6: c.Address6, below: below, sockets: make(map[io.Closer]bool)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h, nil
}

// ownAddresses are the kernel's, of the calling thread's network namespace.
func ownAddresses() (map[netip.Addr]bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := make(map[netip.Addr]bool)
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own[prefix.Addr().Unmap()] = true
		}
	}
	return own, nil
}

// Address returns the IPv4 address, which is the kernel's.
func (h *Host) Address() netip.Addr { return h.address }

// Address6 returns the IPv6 address; the zero Addr if it has none.
func (h *Host) Address6() netip.Addr { return h.address6 }

// SetTopology is as that of a stack.Host: when it returns, no packet takes a path that is
// dead in t. topoupdate/listen and topoupdate/bgp/learn give it topologies.
func (h *Host) SetTopology(t *topology.Topology) error { return h.setTopology(t, false) }

// SetTopology6 is SetTopology of IPv6 packets; it must have begun with a Config.Topology6.
func (h *Host) SetTopology6(t *topology.Topology) error {
	if !h.address6.IsValid() {
		return errors.New("kernelhost: SetTopology6: the Host has begun without a Config.Topology6")
	}
	return h.setTopology(t, true)
}

func (h *Host) setTopology(t *topology.Topology, six bool) error {
	switch {
	case t == nil:
		return errors.New("kernelhost: SetTopology: no topology")
	case t.Node(0).Addr.Is6() != six:
		return fmt.Errorf("kernelhost: SetTopology: %v is of the other family: SetTopology is for IPv4, SetTopology6 for IPv6", t)
	}
	if err := h.below.SetTopology(t); err != nil {
		return fmt.Errorf("kernelhost: SetTopology: %w", err)
	}
	return nil
}

// Stats are counters since New; Straight and Diverted begin anew where SetTopology brings another
// fabric. Packets are counted as uplink.Stats has them.
type Stats struct {
	// Bounces counts, by address, what was sent to each bouncing switch.
	Bounces      []uplink.Bounce `json:"bounces"`
	Encapsulated uint64          `json:"encapsulated"` // packets of Bounces
	Plain        uint64          `json:"plain"`        // left by the kernel's own routes, since the carrier is not proved to their rack
	Passed       uint64          `json:"passed"`       // needed no outer header, or could not get one
	Dropped      uint64          `json:"dropped"`      // the kernel made room for the outer header but refused to write it
	Chosen       uint64          `json:"chosen"`       // flowcells that took the path that samples chose
	Straight     uint64          `json:"straight"`     // arrived in order, and went to the kernel at once
	Diverted     uint64          `json:"diverted"`     // arrived behind a hole, and passed through this process

	Working bool   `json:"working"` // false: packets go as the kernel's own routes have them, see Trouble
	Repairs uint64 `json:"repairs"` // changes of others that were undone
	Trouble string `json:"trouble"` // what is wrong at the moment; "" for nothing
}

// Stats returns the counters of the uplink's program, of all packets that the kernel sends. It
// fails once the Host is closed.
func (h *Host) Stats() (Stats, error) { return h.below.stats() }

var _ interface { // what learn.Fabric.Follow takes
	SetTopology(*topology.Topology) error
	SetTopology6(*topology.Topology) error
} = (*Host)(nil)
