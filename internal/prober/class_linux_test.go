package prober

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/liveness"
	"weft/topology"
)

// flood sends datagrams from a host to another as fast as its port takes them, by
// the spines that the kernel chooses for this many ports.
func flood(t *testing.T, l *lab.Lab, from, to topology.Node, flows int) {
	t.Helper()
	stop := make(chan struct{})
	done := make(chan struct{})
	var conns []*net.UDPConn
	for port := range flows {
		if err := l.Do(from.ID, func() error {
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr, uint16(20000+port))))
			conns = append(conns, c)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		defer close(done)
		b := make([]byte, 1400)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				for range 3 {
					for _, c := range conns {
						c.Write(b) // an error says that a queue is full
					}
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
		for _, c := range conns {
			c.Close()
		}
	})
}

// Probes pass full queues of the switches, whatever carries them, or congestion
// would convict paths.
func TestProber_passesFullQueues(t *testing.T) {
	slowtest.System(t)
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=4")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Hold(context.Background(), lab.Config{Name: kerneltest.LabName("c"), Topology: top, RateMbit: 10, QueueBytes: 250_000, SRv6: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range 3 {
		flood(t, l, top.Node(topology.NodeID(1+i)), top.Node(topology.NodeID(5+i)), 8)
	}
	for _, c := range carriers {
		t.Run(c.String(), func(t *testing.T) {
			h := open1(t, l, top.Node(0).Name, c)
			was := drops(t, l, top.Ports(0)[0].Peer)
			eventually(t, func() (string, bool) {
				sent := h.Stats().Watcher.Sent
				lost := drops(t, l, top.Ports(0)[0].Peer) - was
				return fmt.Sprintf("%d probes, %d packets dropped", sent, lost), sent > 20 && lost > 100
			})
			for _, p := range h.Paths() {
				if p.RTT == 0 || p.RTT > 50*time.Millisecond || p.Loss > 0 || p.State != liveness.Up { // behind data it is 200 ms
					t.Errorf("by %v: %s, round trip %v, lost %.2f", p.Via, p.State, p.RTT, p.Loss)
				}
			}
		})
	}
}

// drops is how many packets a switch had no room for.
func drops(t *testing.T, l *lab.Lab, id topology.NodeID) (n uint64) {
	t.Helper()
	ports, err := l.PortBytes(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ports {
		n += p.Drops
	}
	return n
}
