package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// listenUDP opens a socket on each host.
func listenUDP(t *testing.T, l *Lab, hosts ...topology.Node) []*net.UDPConn {
	t.Helper()
	var socks []*net.UDPConn
	for _, h := range hosts {
		err := l.Do(h.ID, func() error {
			s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: h.Addr.AsSlice()})
			if err == nil {
				socks = append(socks, s)
				t.Cleanup(func() { s.Close() })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return socks
}

// sharedFatTree is a lab through which tests send what arrives before they end.
func sharedFatTree(t *testing.T) *Lab {
	t.Helper()
	return sharedLab(t, Config{Name: kerneltest.SharedLab(), Topology: kerneltest.Topology(t, "fat-tree:k=4")})
}

func TestLab_allPairsReach(t *testing.T) {
	wantAllPairsReach(t, sharedFatTree(t))
}

func wantAllPairsReach(t *testing.T, l *Lab) {
	t.Helper()
	hosts := kerneltest.Hosts(l.Config.Topology)
	socks := listenUDP(t, l, hosts...)
	for i, from := range socks {
		for j, to := range socks {
			if i == j {
				continue
			}
			if _, err := from.WriteTo([]byte{byte(i)}, to.LocalAddr()); err != nil {
				t.Errorf("%s to %s: %v", hosts[i].Name, hosts[j].Name, err)
			}
		}
	}
	for j, s := range socks {
		seen := make(map[byte]bool)
		s.SetReadDeadline(time.Now().Add(kerneltest.Patience))
		b := make([]byte, 1)
		for len(seen) < len(hosts)-1 {
			if _, _, err := s.ReadFrom(b); err != nil {
				t.Fatalf("%s heard %d of %d hosts: %v", hosts[j].Name, len(seen), len(hosts)-1, err)
			}
			seen[b[0]] = true
		}
	}
}

// A switch with a dead link is one path in many: who opens a connection through it,
// before anybody has been told, hears nothing and tries again; an error would end
// the attempt.
func TestLab_deadPathIsSilent(t *testing.T) {
	slowtest.System(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=4")})
	hosts := kerneltest.Hosts(l.Config.Topology)
	from, to := hosts[0], hosts[len(hosts)-1]
	var sink net.Listener
	err := l.Do(to.ID, func() (err error) {
		sink, err = net.Listen("tcp", netip.AddrPortFrom(to.Addr, 80).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, link := range []string{"a3.2-c1.1", "a3.2-c1.2", "a3.3-c2.1"} {
		if _, err := l.Fail(link, FailLoud); err != nil {
			t.Fatal(err)
		}
	}
	// The first host's rack sends flows over all four cores.
	through, lost := 0, 0
	err = l.Do(from.ID, func() error {
		for range 40 {
			c, err := net.DialTimeout("tcp", sink.Addr().String(), 50*time.Millisecond)
			switch timeout, _ := err.(net.Error); {
			case err == nil:
				through++
				c.Close()
			case timeout != nil && timeout.Timeout():
				lost++
			default:
				return err
			}
			if through > 0 && lost >= 10 {
				return nil
			}
		}
		return nil
	})
	if err != nil || through == 0 || lost == 0 {
		t.Errorf("%v; %d connections, %d without an answer", err, through, lost)
	}
}

// A packet to nobody must be refused, not sent round in circles.
func TestLab_nobodyIsUnreachable(t *testing.T) {
	slowtest.System(t)
	l := sharedFatTree(t)
	err := l.Do(0, func() error {
		c, err := net.DialTimeout("tcp", "10.3.1.77:80", 5*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("dial: %v", err)
	}
}

// The switches' own ECMP must use every core: if they all hashed alike, half
// of the cores would stay idle.
func TestLab_kernelECMPUsesAllCores(t *testing.T) {
	slowtest.System(t)
	l := sharedFatTree(t)
	top := l.Config.Topology
	hosts := kerneltest.Hosts(top)
	const flows = 160
	before := corePackets(t, l)
	from, to := hosts[0], hosts[len(hosts)-1]
	sinks := listenUDP(t, l, to)
	sources := make([]topology.Node, flows)
	for i := range sources {
		sources[i] = from
	}
	for _, s := range listenUDP(t, l, sources...) {
		if _, err := s.WriteTo([]byte("x"), sinks[0].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	sinks[0].SetReadDeadline(time.Now().Add(kerneltest.Patience))
	for i := range flows {
		if _, _, err := sinks[0].ReadFrom(make([]byte, 1)); err != nil {
			t.Fatalf("%d of %d arrived: %v", i, flows, err)
		}
	}
	shares := corePackets(t, l)
	var sum uint64
	for i := range shares {
		shares[i] -= before[i]
		sum += shares[i]
	}
	if sum != flows {
		t.Errorf("the cores carried %d packets, want %d", sum, flows)
	}
	for i, n := range shares {
		if n < flows/20 { // a quarter each, by the hash
			t.Errorf("core 3.%d carried %d of %d flows: %v", i, n, flows, shares)
		}
	}
}

// corePackets are the packets that each core switch has sent.
func corePackets(t *testing.T, l *Lab) (sent []uint64) {
	t.Helper()
	for n := range l.Config.Topology.Nodes() {
		if n.Layer != topology.LayerCore {
			continue
		}
		ports, err := l.PortBytes(n.ID)
		if err != nil {
			t.Fatal(err)
		}
		var packets uint64
		for _, p := range ports {
			packets += p.TxPackets
		}
		sent = append(sent, packets)
	}
	return sent
}

// A saturated link must run at its rate, and the counters must say so.
func TestLab_rate(t *testing.T) {
	slowtest.System(t)
	for _, mbit := range []float64{5, 20} {
		t.Run(fmt.Sprint(mbit), func(t *testing.T) {
			l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2"), RateMbit: mbit})
			hosts := kerneltest.Hosts(l.Config.Topology)
			stop := transfer(t, l, hosts[0], hosts[1], tcp{})
			defer stop()
			time.Sleep(300 * time.Millisecond) // slow start
			kerneltest.OnTime(t, func() string {
				start, before := time.Now(), txBytes(t, l, hosts[0].ID)
				time.Sleep(time.Second)
				bits := 8 * float64(txBytes(t, l, hosts[0].ID)-before)
				got := bits / time.Since(start).Seconds() / 1e6
				if got > 1.15*mbit {
					t.Fatalf("%.1f Mbit/s over links of %g", got, mbit)
				}
				if got >= 0.85*mbit {
					return ""
				}
				return fmt.Sprintf("%.1f Mbit/s over links of %g", got, mbit)
			})
		})
	}
}

// Without rates nothing on the way cuts super-segments, and the ports count
// all the same.
func TestLab_unlimitedKeepsSuperSegments(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2"), Unlimited: true})
	hosts := kerneltest.Hosts(l.Config.Topology)
	defer transfer(t, l, hosts[0], hosts[1], tcp{})()
	core := topology.NodeID(l.Config.Topology.NumNodes() - 1)
	var p PortCounters
	kerneltest.Within(t, 20*time.Second, "100 MB through the core", func() bool {
		ports, err := l.PortBytes(core)
		if err != nil {
			t.Fatal(err)
		}
		p = ports[1]
		return p.TxBytes > 100e6
	})
	if mean := p.TxBytes / p.TxPackets; mean < 6000 {
		t.Errorf("the core sent packets of %d bytes on average, of super-segments of 64 KB: %+v", mean, p)
	}
}

func txBytes(t *testing.T, l *Lab, id topology.NodeID) uint64 {
	t.Helper()
	p, err := l.PortBytes(id)
	if err != nil {
		t.Fatal(err)
	}
	return p[0].TxBytes
}

// tcp is how transfer sends; by default as much as it can.
type tcp struct {
	multipath bool
	pause     time.Duration  // between packets
	back      bool           // what accepts the connection sends, and what opens it receives
	received  *atomic.Int64  // counts bytes; nil: nobody counts
	opened    func(net.Conn) // gets what opens the connection, before it sends; nil: nobody does
}

func (how tcp) send(c net.Conn) {
	b := make([]byte, 64<<10)
	if how.pause > 0 {
		b = b[:1000]
	}
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
		time.Sleep(how.pause)
	}
}

func (how tcp) receive(c net.Conn) {
	for b := make([]byte, 64<<10); ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if how.received != nil {
			how.received.Add(int64(n))
		}
	}
}

// transfer sends by kernel TCP until stopped.
func transfer(t *testing.T, l *Lab, from, to topology.Node, how tcp) (stop func()) {
	t.Helper()
	var listener net.Listener
	err := l.Do(to.ID, func() (err error) {
		var lc net.ListenConfig
		lc.SetMultipathTCP(how.multipath)
		listener, err = lc.Listen(t.Context(), "tcp4", to.Addr.String()+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ends := []func(net.Conn){how.receive, how.send}
	if how.back {
		slices.Reverse(ends)
	}
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		ends[0](c)
	}()
	var conn net.Conn
	err = l.Do(from.ID, func() (err error) {
		var d net.Dialer
		d.SetMultipathTCP(how.multipath)
		conn, err = d.Dial("tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		listener.Close()
		t.Fatal(err)
	}
	if how.opened != nil {
		how.opened(conn)
	}
	go ends[1](conn)
	return func() {
		conn.Close()
		listener.Close()
	}
}

func TestStatus(t *testing.T) {
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	top := l.Config.Topology
	core, err := top.Lookup("3.0")
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.Within(t, kerneltest.Patience, "all links up", func() bool {
		for _, n := range l.Status() {
			for _, p := range n.Ports {
				if !p.Up {
					return false
				}
			}
		}
		return true
	})
	status := l.Status()
	if len(status) != top.NumNodes() {
		t.Fatalf("%d nodes, want %d", len(status), top.NumNodes())
	}
	for i, s := range status {
		n := top.Node(topology.NodeID(i))
		bounces := n.Layer == topology.LayerAgg || n.Layer == topology.LayerCore
		if s.Node != n.Name || s.Error != "" || len(s.Ports) != len(top.Ports(n.ID)) || bounces != (s.Decap != "") {
			t.Errorf("%s: %+v", n.Name, s)
		}
	}
	if err := kernel.DeleteNamespace(l.Namespace(core.ID)); err != nil {
		t.Fatal(err)
	}
	again, err := Open(l.Config.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, s := range again.Status() {
		if (s.Error != "") != (s.Node == core.Name) {
			t.Errorf("%s: error %q", s.Node, s.Error)
		}
	}
}
