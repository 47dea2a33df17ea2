package listen

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/topology"
	"weft/topoupdate"
)

// forgeries are what an edge switch would say whose uplinks are all down, numbered
// so that nothing of the switch's own is newer.
func (r *rack) forgeries(n int) (messages [][]byte) {
	r.t.Helper()
	for i := range n {
		a, err := topoupdate.NewAgent(topoupdate.AgentConfig{Topology: r.top, Self: r.edge.ID, Boot: math.MaxUint64/2 + uint64(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		a.Carrier(2, false, 0)
		a.Carrier(3, false, 0)
		a.Tick(0)
		a.Send(func(port int, b []byte) {
			if port == 0 {
				messages = append(messages, append([]byte(nil), b...))
			}
		})
	}
	return messages
}

// forge sends messages to the group as any program can: with a full TTL, and heard
// on its own machine, too. source must be an address of the node.
func (r *rack) forge(id topology.NodeID, source [4]byte, messages [][]byte) {
	r.t.Helper()
	r.do(id, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		dev, err := net.InterfaceByName("p0")
		if err != nil {
			return err
		}
		err = errors.Join(
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(dev.Index)}),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 255),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1),
			unix.Bind(fd, &unix.SockaddrInet4{Addr: source}))
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := unix.Sendto(fd, m, 0, &unix.SockaddrInet4{Port: topoupdate.Port, Addr: topoupdate.Group.As4()}); err != nil {
				return err
			}
			time.Sleep(300 * time.Microsecond) // queues are short, and all are to arrive
		}
		return nil
	})
}

// The cable stands for a segment with others on it. Whoever sends with an address
// of his own, and whoever runs a program on the host itself, is not believed. Who
// forges the switch's address takes no more than the floor leaves.
func TestListener_forgeriesFromTheSegment(t *testing.T) {
	r := newRack(t, "f")
	r.keys = topoupdate.Keys{}
	l := r.open(r.config(func(*topology.Topology) {}))
	r.within("the carrier is seen", func() bool { return l.Status().Carrier })
	const n = 500
	all := r.forgeries(n)
	stranger := [4]byte{10, 0, 0, 77}
	r.do(r.edge.ID, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: stranger[:], Mask: net.CIDRMask(32, 32)}})
	})
	count := func(what string, taken func(Status) uint64) {
		t.Helper()
		end := time.Now().Add(time.Minute)
		for taken(l.Status()) < n && time.Now().Before(end) {
			time.Sleep(5 * time.Millisecond)
		}
		s := l.Status()
		whole := len(r.top.Paths(r.host.ID, topology.NodeID(r.top.NumHosts()-1)).Live)
		left := len(l.Topology().Paths(r.host.ID, topology.NodeID(r.top.NumHosts()-1)).Live)
		t.Logf("%d forgeries %s: %d refused or dropped, down %v, %d held, %d of %d paths left", n, what, taken(s), s.Down, s.Held, left, whole)
		if left < whole/2 || taken(s) < n {
			t.Errorf("%s: %d of %d paths are left, %d of %d were counted; %+v", what, left, whole, taken(s), n, s)
		}
	}
	r.forge(r.host.ID, r.host.Addr.As4(), all)
	count("by a program on the host", func(s Status) uint64 { return s.Wire.Ports[0].Dropped })
	if d := l.Topology().Down(); len(d) > 0 {
		t.Errorf("down: %v", d)
	}
	r.forge(r.edge.ID, stranger, all)
	count("with an address of his own", func(s Status) uint64 { return s.Rejected["source"] })
	if d := l.Topology().Down(); len(d) > 0 {
		t.Errorf("down: %v", d)
	}
	r.forge(r.edge.ID, r.edge.Addr.As4(), all)
	count("with the switch's address", func(s Status) uint64 { return s.Received - s.Rejected["source"] })
	if s := l.Status(); s.Held != 1 || len(s.Down) != 1 || s.Trust == "" {
		t.Errorf("%+v", s)
	}
}

// A gateway's address counts beside the switch's own.
func TestListener_updatesFromTheGateway(t *testing.T) {
	r := newRack(t, "g")
	r.keys = topoupdate.Keys{}
	r.reset()
	gateway := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 0, 0, 126), Mask: net.CIDRMask(25, 32)}}
	r.do(r.edge.ID, func() error {
		port, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(port, gateway) // the kernel now sends from it
	})
	c := r.config(func(*topology.Topology) {})
	without := r.open(c)
	c.Gateway = netip.AddrFrom4([4]byte(gateway.IP.To4()))
	with := r.open(c)
	r.uplink(2, false)
	r.within("it is heard", func() bool { return len(with.Topology().Down()) == 1 })
	r.within("the other refuses it", func() bool { return without.Status().Rejected["source"] > 0 })
	if len(without.Topology().Down()) > 0 {
		t.Error("taken from an address that nobody has named")
	}
}
