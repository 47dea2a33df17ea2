package switchd

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/flowcell"
	"weft/hedera/wire"
	"weft/internal/scheduling/schedulingtest"
	"weft/internal/slowtest"
	"weft/topoupdate"
)

// sender sends from h0.0.2 to two hosts of other racks, 4 Mbit/s each, by one port. The address is
// node's.
func (l *testLab) sender(node string, port int) (stop func()) {
	l.t.Helper()
	var c net.PacketConn
	err := l.Do(l.id(node), func() (err error) {
		c, err = net.ListenPacket("udp4", fmt.Sprintf("10.0.0.2:%d", port))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range time.Tick(2 * time.Millisecond) {
			for _, dst := range []string{"10.1.0.2:9", "10.1.0.3:9"} {
				if _, err := c.WriteTo(make([]byte, 1000), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(dst))); err != nil {
					return
				}
			}
		}
	}()
	return func() { c.Close(); <-ended }
}

// collides reports whether nearly all that goes up goes by one port.
func (l *testLab) collides() bool {
	by := l.sentUp(200_000)
	return min(by[0], by[1]) < max(by[0], by[1])/10
}

// Two elephants that the kernel's hash sends by one port are reported and placed apart: half
// of the bytes goes up by each port. When the scheduler is silent, the pins expire, and the
// hash decides again. What is placed by no path of the flow's is refused.
func TestRun_schedules(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "b", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	key := topoupdate.Key{ID: 9, Secret: []byte(strings.Repeat("k", 32))}
	edge := l.top.Node(l.id("e0.0")).Addr
	var fake *schedulingtest.Fake
	err := l.Do(l.id("e0.0"), func() error {
		fake = schedulingtest.Start(t, netip.MustParseAddrPort("127.0.0.1:0"), l.top, topoupdate.Keys{List: []topoupdate.Key{key}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := l.child("e0.0", fmt.Sprintf("topology: fat-tree:k=4\nbalance: ecmp\nkeys: [{id: 9, key: %q}]\nscheduler: {servers: [%q], every: 100ms, link_mbit: 20}\n",
		base64.StdEncoding.EncodeToString(key.Secret), fake.Addr))
	l.within("the agent has heard of the scheduler", func() bool {
		s := p.status()
		return s.BalanceError == "" && s.Scheduler != nil && s.Scheduler.Leader == fake.Addr.String()
	})

	port, stop := 4000, func() {}
	for { // until two flows collide, as every second pair does
		stop = l.sender("h0.0.2", port)
		if l.collides() {
			break
		}
		stop()
		if port++; port == 4064 {
			t.Fatal("no two of 64 pairs of flows collide")
		}
	}
	defer func() { stop() }()
	var flows []wire.Flow
	l.within("both are reported", func() bool {
		flows = fake.Reported(edge)
		return len(flows) == 2 && int(flows[0].Tuple.SrcPort) == port && int(flows[1].Tuple.SrcPort) == port
	})
	// A reading of 100 ms in which a busy machine's sender did not run has no elephant.
	l.within("the status has both", func() bool {
		s := p.status().Scheduler
		return s.Elephants >= 2 && len(s.Largest) == s.Elephants && s.Pins == 0 && s.Evicted == 0
	})

	src := l.id("h0.0.2")
	place := func(n, path int, valid time.Duration) wire.Placement {
		dst, _ := l.top.ByAddr(flows[n].Tuple.Dst.IP())
		return wire.Placement{Tuple: flows[n].Tuple, Path: path, Via: l.top.Paths(src, dst).Addr(path), For: valid}
	}
	const first, last = 0, 3 // by a0.2 and a0.3
	wrong := place(0, first, time.Minute)
	wrong.Via = place(0, last, 0).Via
	if !fake.Place(edge, wrong) {
		t.Fatal("the agent has no session")
	}
	l.within("a path by another switch is refused", func() bool {
		s := p.status().Scheduler
		return s.Unknown == 1 && s.Pins == 0 && strings.Contains(s.LastRefused, "none of its paths")
	})
	fake.Place(edge, place(0, first, time.Minute), place(1, last, time.Minute))
	l.within("both are pinned", func() bool { return p.status().Scheduler.Pins == 2 })
	apart := func() bool { by := l.sentUp(200_000); return min(by[0], by[1]) >= 100_000 }
	l.within("as much goes by both ports", apart) // once the kernel knows
	for n, path := range []int{last, first} {     // and the other way round
		fake.Place(edge, place(n, path, time.Minute))
	}
	l.within("both are pinned anew", func() bool { return p.status().Scheduler.Set == 4 })
	l.within("as much goes by both ports", apart)

	fake.Place(edge, place(0, last, time.Millisecond), place(1, first, 0))
	l.within("one has expired, and one is withdrawn", func() bool { s := p.status().Scheduler; return s.Pins == 0 && s.Expired == 1 })
	l.within("the flows collide again", l.collides)
	if s := p.status().Scheduler; s.Program.Pinned < 200 || s.Error != "" {
		t.Errorf("%+v", s)
	}
	stop()
	stop = func() {}
	l.schedulesSix(p, fake)
}

// An aggregation switch reports nothing, and sends what edge switches have reported to the core of
// its path. A path by another switch is refused.
func TestRun_pinsAboveTheEdge(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, "p", "fat-tree:k=4", "e0.0", "a0.2", "c1.1", "c1.2")
	for node, commands := range map[string]string{ // instead of a host, and of the other pod
		"e0.0": "ip addr add 10.0.0.2/32 dev lo && ip route add 10.1.0.0/16 via 10.0.2.1 dev p2 onlink",
		"a0.2": "ip route add 10.1.0.0/16 nexthop via 10.4.1.1 dev p2 onlink nexthop via 10.4.1.2 dev p3 onlink",
	} {
		if out, err := l.sh(node, commands); err != nil {
			t.Fatalf("%s: %s: %v: %s", node, commands, err, out)
		}
	}
	key := topoupdate.Key{ID: 9, Secret: []byte(strings.Repeat("k", 32))}
	at := l.top.Node(l.id("a0.2")).Addr
	var fake *schedulingtest.Fake
	err := l.Do(l.id("a0.2"), func() error {
		fake = schedulingtest.Start(t, netip.MustParseAddrPort("127.0.0.1:0"), l.top, topoupdate.Keys{List: []topoupdate.Key{key}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := l.child("a0.2", fmt.Sprintf("topology: fat-tree:k=4\nconfigure: false\nroutes: false\nbalance: ecmp\nkeys: [{id: 9, key: %q}]\nscheduler: {servers: [%q], every: 100ms, link_mbit: 20}\n",
		base64.StdEncoding.EncodeToString(key.Secret), fake.Addr))
	l.within("the agent has heard of the scheduler", func() bool {
		s := p.status()
		return s.BalanceError == "" && s.Scheduler != nil && s.Scheduler.Leader == fake.Addr.String()
	})
	const port = 4000
	defer l.sender("e0.0", port)()
	src := l.id("h0.0.2")
	place := func(to string, path int) wire.Placement {
		dst := l.id(to)
		return wire.Placement{Path: path, Via: l.top.Paths(src, dst).Addr(path), For: time.Minute, Tuple: flowcell.FiveTuple{Proto: flowcell.ProtoUDP,
			Src: flowcell.AddressFrom(l.top.Node(src).Addr), Dst: flowcell.AddressFrom(l.top.Node(dst).Addr), SrcPort: port, DstPort: 9}}
	}
	set := uint64(0)
	for _, paths := range [][2]int{{0, 1}, {0, 0}, {1, 1}, {1, 0}} {
		l.within("the agent has a session", func() bool { return fake.Place(at, place("h1.0.2", paths[0]), place("h1.0.3", paths[1])) })
		set += 2
		l.within("both are pinned", func() bool { return p.status().Scheduler.Set == set })
		l.within(fmt.Sprintf("they go by paths %v", paths), func() bool {
			by := l.sentUpBy("a0.2", 100_000)
			share := float64(by[0]) / float64(by[0]+by[1])
			want := float64(2-paths[0]-paths[1]) / 2 // half of the bytes is one flow's
			return share > want-.1 && share < want+.1
		})
	}
	fake.Place(at, place("h1.0.2", 2))
	l.within("a path by another switch is refused", func() bool {
		s := p.status().Scheduler
		return s.Unknown == 1 && strings.Contains(s.LastRefused, "does not lead by a0.2")
	})
	if s := p.status().Scheduler; s.Elephants != 0 || s.Counted != 0 || len(fake.Reported(at)) > 0 || s.Pins != 2 || s.Program.Pinned == 0 {
		t.Errorf("%+v", s)
	}
}
