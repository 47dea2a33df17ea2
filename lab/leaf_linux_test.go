package lab

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// leafLab has two hosts behind the first leaf that send to the second leaf's, while a host of
// the third leaf keeps the link from the first spine to the second leaf busy.
type leafLab struct {
	*balanced
	hosts []topology.Node // two for each leaf
}

func upLeaf(t *testing.T, rule string) *leafLab {
	t.Helper()
	l := upLab(t, Config{Name: kerneltest.LabName("l"), Topology: kerneltest.Topology(t, "leaf-spine:leaves=3,spines=2,hosts=2"), RateMbit: 50, Balance: rule})
	hosts := kerneltest.Hosts(l.Config.Topology)
	b := &balanced{Lab: l, t: t, src: hosts[0], dst: hosts[2]}
	b.leaf = l.Config.Topology.Node(l.Config.Topology.EdgeOf(b.src.ID))
	for _, p := range l.Config.Topology.Ports(b.leaf.ID) {
		if p.Up {
			b.uplinks = append(b.uplinks, p.Index)
		}
	}
	return &leafLab{b, hosts}
}

// keepBusy sends datagrams of a host by the first path to another until the test ends, at a
// rate in Mbit/s.
func (l *leafLab) keepBusy(from, to topology.Node, mbit float64) {
	l.t.Helper()
	top := l.Config.Topology
	spine := top.Paths(from.ID, top.EdgeOf(to.ID)).Addr(0)
	var sink *net.UDPConn
	err := l.Do(to.ID, func() (err error) {
		sink, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr, 9)))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	var raw int
	err = l.Do(from.ID, func() (err error) {
		raw, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	const payload = 1400
	udp := make([]byte, 8+payload)
	udp[1], udp[3], udp[4], udp[5] = 9, 9, byte(len(udp)>>8), byte(len(udp)&255)
	inner := kerneltest.IPv4{TTL: 64, Protocol: 17, Src: from.Addr, Dst: to.Addr}.Bytes(udp)
	packet := kerneltest.IPv4{TTL: 64, Protocol: 4, Src: from.Addr, Dst: spine}.Bytes(inner)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		start, sent := time.Now(), 0.
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
			due := time.Since(start).Seconds() * mbit * 1e6 / 8
			// Who had to wait for a processor does not send it all at once: queues are short.
			sent = max(sent, due-16<<10)
			for ; sent < due; sent += float64(len(packet) + 14) {
				unix.Sendto(raw, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: spine.As4()})
			}
		}
	}()
	l.t.Cleanup(func() {
		close(stop)
		<-ended
		unix.Close(raw)
		sink.Close()
	})
}

// share sends over connections, and returns which part of so many bytes the first uplink
// took, once the connections have begun.
func (l *leafLab) share(connections int, bytes uint64) float64 {
	l.t.Helper()
	end := time.Now().Add(kerneltest.Patience)
	before := l.sent()
	until := func(bytes uint64) (now []uint64) {
		for ; ; time.Sleep(5 * time.Millisecond) {
			sum := uint64(0)
			now = l.sent()
			for i := range now {
				sum += now[i] - before[i]
			}
			if sum >= bytes {
				return now
			}
			if time.Now().After(end) {
				l.t.Fatalf("%d bytes were sent, want %d", sum, bytes)
			}
		}
	}
	for range connections {
		c, received := l.connect()
		defer func() { <-received }()
		defer c.Close()
		c.SetDeadline(end)
		go func() {
			for {
				if _, err := c.Write(make([]byte, 16<<10)); err != nil {
					return
				}
			}
		}()
	}
	before = until(bytes / 8)
	after := until(bytes)
	var all float64
	for i := range after {
		all += float64(after[i] - before[i])
	}
	return float64(after[0]-before[0]) / all
}

// deafen takes the program from the leaf at the other end, which then neither answers nor
// reports: paths are led as before, but nothing is known of them.
func (l *leafLab) deafen() {
	l.t.Helper()
	leaf := l.Config.Topology.EdgeOf(l.dst.ID)
	err := l.Do(leaf, func() error {
		n, err := fabric.DetachBalance([]string{"p0", "p1", "p2", "p3"})
		if err == nil && n != 4 {
			l.t.Errorf("%d ports had the program, want 4", n)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// What leads by paths moves away from a link that others keep busy, far behind the leaf. The
// same program does not where the other end tells it nothing.
func TestLeaf_avoidsABusyLink(t *testing.T) {
	slowtest.System(t)
	for _, c := range []struct {
		rule string
		deaf bool
	}{{"luopan", false}, {"conga", false}, {"luopan", true}, {"conga", true}} {
		t.Run(fmt.Sprintf("%s,deaf=%v", c.rule, c.deaf), func(t *testing.T) {
			l := upLeaf(t, c.rule)
			if c.deaf {
				l.deafen()
			}
			l.keepBusy(l.hosts[4], l.hosts[3], 45)
			kerneltest.OnTime(t, func() string {
				share := l.share(4, 6e6)
				t.Logf("%.3f by the busy path", share)
				if c.deaf != (share > 0.32) || share > 0.7 {
					return fmt.Sprintf("%.3f went by the busy path", share)
				}
				return ""
			})
			s, err := l.Balanced(l.leaf.ID)
			if err != nil || s == nil || s.Leaf == nil {
				t.Fatalf("%+v, %v", s, err)
			}
			t.Logf("%+v, %+v", s, s.Leaf)
			if s.Chosen == 0 || s.Leaf.TooLong != 0 || s.Leaf.Refused != 0 || s.Destinations != 2 {
				t.Errorf("%+v, %+v", s, s.Leaf)
			}
			// A deaf leaf leaves marks on, and a kernel may copy a packet's DSCP to what it answers
			// without a socket: that looks like a mark, now and then.
			if heard := s.Leaf.Heard + s.Leaf.Learned; (heard*50 < s.Chosen) != c.deaf {
				t.Errorf("%d reports: %+v", heard, s.Leaf)
			}
			if spine, err := l.Balanced(l.Config.Topology.Ports(l.leaf.ID)[l.uplinks[0]].Peer); err != nil || spine != nil {
				t.Errorf("a spine balances: %+v, %v", spine, err)
			}
		})
	}
}

// tell has all leaves know which links are down, as agents do.
func (l *leafLab) tell(down ...topology.LinkID) {
	l.t.Helper()
	top := l.Config.Topology.Without(down...)
	for edge := range top.Racks() {
		err := l.Do(edge, func() error {
			return fabric.RefreshLeaf([]string{"p0", "p1", "p2", "p3"}, fabric.LeafConfig{Topology: top, Self: edge})
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// Once the leaves know that a link is down, no packet takes a path over it, and connections
// go on. When it is up, the path is in use again.
func TestLeaf_deadUplink(t *testing.T) {
	slowtest.System(t)
	for _, rule := range []string{"luopan", "conga"} {
		t.Run(rule, func(t *testing.T) {
			l := upLeaf(t, rule)
			link := l.Config.Topology.Ports(l.leaf.ID)[l.uplinks[0]].Link
			firstTakes := func(connections int) uint64 {
				t.Helper()
				before := l.sent()
				for range connections {
					l.transfer(128 << 10)
				}
				after := l.sent()
				return after[0] - before[0]
			}
			// Which path a connection takes is chance: it takes some until one goes by the first.
			firstIsUsed := func(what string) {
				t.Helper()
				for end := time.Now().Add(kerneltest.Patience); firstTakes(1) < 10<<10; {
					if time.Now().After(end) {
						t.Fatalf("the first uplink %s, and takes nothing", what)
					}
				}
			}
			c, received := l.connect()
			c.SetDeadline(time.Now().Add(kerneltest.Patience))
			if _, err := c.Write(make([]byte, 256<<10)); err != nil {
				t.Fatal(err)
			}
			firstIsUsed("has not failed yet")
			if _, err := l.Fail(l.Config.Topology.LinkName(link), FailLoud); err != nil {
				t.Fatal(err)
			}
			l.tell(link)
			if _, err := c.Write(make([]byte, 256<<10)); err != nil {
				t.Fatal(err)
			}
			if n := firstTakes(4); n != 0 {
				t.Errorf("the first uplink is down, and took %d bytes", n)
			}
			mustHeal(t, l.Lab)
			l.tell()
			firstIsUsed("is up again")
			c.Close()
			if n := <-received; n != 2*256<<10 {
				t.Errorf("%d bytes arrived", n)
			}
		})
	}
}

// Failures at switches that are no leaves change nothing there, whatever their numbers.
func TestLeaf_failuresAtSpines(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Name: kerneltest.LabName("s"), Topology: kerneltest.Topology(t, "leaf-spine:leaves=4,spines=4,hosts=4"), RateMbit: 50, Balance: "conga"})
	for _, what := range []string{"a0.3", "e0.3-a0.2"} {
		if _, err := l.Fail(what, FailLoud); err != nil {
			t.Fatalf("%s fails: %v", what, err)
		}
		if _, err := l.Heal(what); err != nil {
			t.Fatalf("%s heals: %v", what, err)
		}
	}
}
