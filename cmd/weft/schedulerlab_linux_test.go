package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/bench/schedulerlab"
	"weft/bench/testbed"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// schedulerBed is a lab with a real scheduler, and two connections from one rack to hosts of one pod,
// which fill their hosts' links.
type schedulerBed struct {
	t        *testing.T
	lab      *lab.Lab
	s        *schedulerlab.Scheduled
	d        *testbed.Daemons
	received [2]atomic.Int64
	broken   atomic.Bool
	ports    [2]string // of the senders
}

// senders and receivers: each sender's paths are those of the other.
var schedulerPairs = [2][2]topology.NodeID{{0, 12}, {1, 14}}

func newSchedulerBed(t *testing.T, hosts bool) *schedulerBed {
	slowtest.System(t)
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := schedulerlab.Check(); err != nil {
		t.Skip(err)
	}
	self := program(t)
	ctx := context.WithoutCancel(t.Context()) // which Go ends before Close: all that has ended would be taken for interrupted
	b := &schedulerBed{t: t}
	l, err := lab.Hold(ctx, lab.Config{Name: kerneltest.LabName("s"), RateMbit: 8, Topology: kerneltest.Topology(t, "fat-tree:k=4"), Balance: "ecmp"})
	if err != nil {
		t.Fatal(err)
	}
	b.lab = l
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	b.s, err = schedulerlab.Start(ctx, schedulerlab.Config{Lab: l, Topology: "fat-tree:k=4", LinkMbit: 8, Rule: "first-fit", Every: 250 * time.Millisecond,
		Lifetime: 2 * time.Second, Switches: !hosts, Argv: self.Args[:1], Env: self.Env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.s.Close(); err != nil {
			t.Error(err)
		}
	})
	var list []testbed.DaemonHost
	for n := range l.Config.Topology.Hosts() {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if hosts {
			h.Config = fmt.Sprintf("mode: offload\npolicy: ecmp\nuser: root\nfailures: {budget: 50, keys: %s}\ntopology: %q\n%s\n", b.s.Keys(), b.s.Spec(), b.s.Section())
		}
		list = append(list, h)
	}
	if b.d, err = testbed.StartDaemons(ctx, l, list, self.Args[:1], self.Env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.d.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, p := range schedulerPairs {
		b.connect(i, p[0], p[1])
	}
	return b
}

// connect has one host send to another for as long as the test takes.
func (b *schedulerBed) connect(i int, src, dst topology.NodeID) {
	to := netip.AddrPortFrom(b.lab.Config.Topology.Node(dst).Addr, 7000)
	var listener net.Listener
	if err := b.lab.Do(dst, func() (err error) { listener, err = net.Listen("tcp", to.String()); return err }); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { listener.Close() })
	var a net.Conn
	if err := b.lab.Do(src, func() (err error) { a, err = net.DialTimeout("tcp", to.String(), kerneltest.Patience); return err }); err != nil {
		b.t.Fatal(err)
	}
	c, err := listener.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	var ending atomic.Bool
	b.ports[i] = a.LocalAddr().String()
	copied := func(step func([]byte) (int, error), n *atomic.Int64) {
		defer func() { done <- struct{}{} }()
		for buf := make([]byte, 1<<14); ; {
			k, err := step(buf)
			n.Add(int64(k))
			if err != nil {
				if !ending.Load() {
					b.broken.Store(true)
				}
				return
			}
		}
	}
	go copied(a.Write, new(atomic.Int64))
	go copied(c.Read, &b.received[i])
	b.t.Cleanup(func() { ending.Store(true); a.Close(); c.Close(); <-done; <-done })
}

func (b *schedulerBed) within(what string, ok func() bool) {
	b.t.Helper()
	kerneltest.Within(b.t, kerneltest.Patience, what, ok)
}

// pinned returns each connection's path at the nodes that have it pinned, by name.
func (b *schedulerBed) pinned() (paths [2]map[string]int, expired uint64) {
	nodes, err := b.s.Nodes(context.WithoutCancel(b.t.Context()), b.d)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range paths {
		paths[i] = make(map[string]int)
	}
	for name, n := range nodes {
		expired += n.Expired
		for _, p := range n.Pinned {
			for i, from := range b.ports {
				if strings.HasPrefix(p.Flow, "tcp "+from+" ") {
					paths[i][name] = p.Path
				}
			}
		}
	}
	return paths, expired
}

// flows waits until both connections have moved some bytes more.
func (b *schedulerBed) flows(why string) {
	b.t.Helper()
	first, second := b.received[0].Load(), b.received[1].Load()
	b.within("both connections go on "+why, func() bool {
		return b.received[0].Load() > first+200_000 && b.received[1].Load() > second+200_000
	})
}

// obeyed waits until each connection leaves its aggregation switch by the port of its path, and
// nearly nothing leaves there by the other, and until the program there says that it is pinned.
func (b *schedulerBed) obeyed() {
	b.t.Helper()
	top := b.lab.Config.Topology
	paths, _ := b.pinned()
	for i, p := range schedulerPairs {
		path := top.Paths(p[0], p[1]).Path(paths[i][top.Node(top.EdgeOf(p[0])).Name])
		at, by := path.Hops[2], path.Links[2]
		sent := func() (pinned, others, packets uint64) {
			ports, err := b.lab.PortBytes(at)
			if err != nil {
				b.t.Fatal(err)
			}
			for k, port := range top.Ports(at) {
				switch {
				case port.Link == by:
					pinned = ports[k].TxBytes
				case port.Up:
					others += ports[k].TxBytes
				}
			}
			nodes, err := b.s.Nodes(b.t.Context(), b.d)
			if err != nil {
				b.t.Fatal(err)
			}
			return pinned, others, nodes[top.Node(at).Name].Program.Pinned
		}
		pinned, others, packets := sent()
		b.within(fmt.Sprintf("connection %d goes by its pin at %s", i, top.Node(at).Name), func() bool {
			p, o, n := sent()
			if p-pinned < 200_000 {
				return false
			}
			ok := o-others < (p-pinned)/10 && n > packets
			pinned, others, packets = p, o, n
			return ok
		})
	}
}

// The real scheduler, with etcd, places two elephants of a rack apart: at switches the whole path is pinned, at the
// edge and at the aggregation switch that it leads by, and the kernel obeys. The scheduler is killed: pins expire,
// the connections go on. It comes back, and places them again.
func testScheduler(t *testing.T, hosts bool, pins int) {
	b := newSchedulerBed(t, hosts)
	apart := func() bool {
		p, _ := b.pinned()
		if len(p[0]) != pins || len(p[1]) != pins {
			return false
		}
		var path [2]int
		for i := range p {
			for _, path[i] = range p[i] {
			}
		}
		for i := range p {
			for _, n := range p[i] {
				if n != path[i] {
					return false
				}
			}
		}
		return path[0]/2 != path[1]/2 // by different aggregation switches
	}
	b.within("both are placed apart", apart)
	b.flows("by their pins")
	if !hosts {
		b.obeyed()
	}
	if err := b.s.Kill(); err != nil {
		t.Fatal(err)
	}
	b.within("the pins expire", func() bool {
		p, expired := b.pinned()
		return len(p[0]) == 0 && len(p[1]) == 0 && expired >= uint64(2*pins)
	})
	b.flows("without a scheduler")
	if err := b.s.StartScheduler(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.within("both are placed apart again", apart)
	b.flows("with another scheduler")
	if b.broken.Load() {
		t.Error("a connection broke")
	}
}

func TestScheduler_placesAtSwitches(t *testing.T) { testScheduler(t, false, 2) }

func TestScheduler_placesAtHosts(t *testing.T) { testScheduler(t, true, 1) }
