package switchd

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/hedera/wire"
	"weft/internal/elephant"
	"weft/internal/kernel/kerneltest"
	"weft/internal/scheduling/schedulingtest"
	"weft/topology"
)

// schedulesSix goes on with IPv6, for which the administrator has given addresses and routes: a flow
// between addresses that belong to hosts' is reported and goes by the port that it is placed on. One of
// another address is counted as foreign.
func (l *testLab) schedulesSix(p *child, fake *schedulingtest.Fake) {
	const enable = "set -e; sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 net.ipv6.conf.all.forwarding=1\n"
	edge := "ip -6 addr add fe80::1/64 dev p0 nodad\n"
	hops := ""
	for _, port := range []string{"2", "3"} {
		edge += "ip -6 neigh add fe80::" + port + " lladdr 02:00:00:00:00:0" + port + " dev p" + port + "\n"
		hops += " nexthop via fe80::" + port + " dev p" + port
	}
	kerneltest.Shell(l.t, l.Namespace(l.id("e0.0")), enable+edge+
		"ip -6 route add fd77:6566:7400::a01:0/112"+hops+"\nip -6 route add fd77:6566:7400::a00:2 via fe80::2:2 dev p0 onlink")
	kerneltest.Shell(l.t, l.Namespace(l.id("h0.0.2")), enable+"sysctl -qw net.ipv6.conf.all.forwarding=0\nip -6 addr add fe80::2:2/64 dev p0 nodad\n"+
		"ip -6 addr add fd77:6566:7400::a00:2/128 dev p0 nodad; ip -6 addr add fd00::2/128 dev p0 nodad; ip -6 route add default via fe80::1 dev p0")
	const to = "fd77:6566:7400::a01:2"
	defer l.send6("fd77:6566:7400::a00:2", to)()
	stop := l.send6("fd00::2", to)
	at := l.top.Node(l.id("e0.0")).Addr
	var flow wire.Flow
	l.within("the flow of IPv6 is reported, and the other one counted", func() bool {
		flows := fake.Reported(at)
		if len(flows) != 1 || !flows[0].Tuple.Src.Is6() {
			return false
		}
		flow = flows[0]
		return p.status().Scheduler.Foreign == 1
	})
	stop()
	if from := flow.Tuple.Src.IP(); from != topology.Addr6(netip.MustParseAddr("10.0.0.2")) {
		l.t.Errorf("%v is reported", from)
	}
	dst, _ := l.top.ByAddr(netip.MustParseAddr("10.1.0.2"))
	paths := l.top.Paths(l.id("h0.0.2"), dst)
	for n, path := range []int{0, 3} { // by a0.2 and a0.3
		before := p.status().Scheduler
		fake.Place(at, wire.Placement{Tuple: flow.Tuple, Path: path, Via: paths.Addr(path), For: time.Minute})
		l.within("it is pinned", func() bool { return p.status().Scheduler.Set > before.Set })
		l.within("packets go by the port", func() bool {
			by := l.sentUp(100_000)
			return by[n] > 10*by[1-n]
		})
		if s := p.status().Scheduler; s.Program.Pinned < before.Program.Pinned+90 {
			l.t.Errorf("%d packets went by the pin, before %d", s.Program.Pinned, before.Program.Pinned)
		}
	}
	if s := p.status().Scheduler; s.Error != "" || s.Pins != 1 {
		l.t.Errorf("%+v", s)
	}
}

// send6 sends 4 Mbit/s from an address of h0.0.2.
func (l *testLab) send6(from, to string) (stop func()) {
	l.t.Helper()
	var c net.PacketConn
	err := l.Do(l.id("h0.0.2"), func() (err error) {
		c, err = net.ListenPacket("udp6", "["+from+"]:5000")
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range time.Tick(2 * time.Millisecond) {
			_, err := c.WriteTo(make([]byte, 1000), net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(to), 9)))
			if errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	return func() { c.Close(); <-ended }
}

// A flow of IPv6 leaves by the port of the flow between the addresses of IPv4 that its own belong to.
func TestPortFor_sixIsAsFour(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	at := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 7) }
	src, dst := top.Node(0).Addr, top.Node(15).Addr
	set, self := top.Paths(0, 15), top.EdgeOf(0)
	ports := make(map[int]bool)
	for path := range set.Count() {
		pin := elephant.Pin{Path: path, Via: set.Addr(path), Flow: elephant.Flow{Src: at(src), Dst: at(dst), Protocol: elephant.TCP}}
		want, err := portFor(top, self, pin)
		pin.Flow.Src, pin.Flow.Dst = at(topology.Addr6(src)), at(topology.Addr6(dst))
		got, err2 := portFor(top, self, pin)
		if err != nil || err2 != nil || got != want {
			t.Errorf("path %d: port %d, %v; of IPv6 %d, %v", path, want, err, got, err2)
		}
		ports[got] = true
		pin.Flow.Dst = netip.MustParseAddrPort("[2001:db8::1]:7")
		if _, err := portFor(top, self, pin); err == nil {
			t.Error("a flow to nobody has a port")
		}
	}
	if len(ports) != 2 {
		t.Errorf("the paths leave by %d ports, want 2", len(ports))
	}
}
