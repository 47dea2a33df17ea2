package interop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// ecnCases say where two hosts' traffic meets, and which header is marked there.
var ecnCases = []struct {
	name, encapsulation string
	from                [2]string
	crowded, towards    string // the switch whose port to another is too narrow
}{
	// The outer one, which the spine's program takes off.
	{"before the bounce", "ipip", [2]string{"h0.0.2", "h0.0.3"}, "e0.0", "a0.0"},
	// The inner one, which is bare from there on.
	{"at the spine", "ipip", [2]string{"h0.0.2", "h0.1.2"}, "a0.0", "e0.2"},
	// The outer one, which the edge switch takes off.
	{"at the spine, labelled", "srv6", [2]string{"h0.0.2", "h0.1.2"}, "a0.0", "e0.2"},
}

// ecnTo are the hosts to which they send.
var ecnTo = [2]string{"h0.2.2", "h0.2.3"}

// A congestion mark that a switch makes on its way through the fabric reaches the
// kernel's TCP, through daemons on both ends, and that gives way: the queue is
// shorter than that of the same transfers without ECN.
func TestECN_endToEnd(t *testing.T) {
	slowtest.System(t)
	top, err := topology.Parse("leaf-spine:leaves=3,spines=1,hosts=2")
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, "h", func(c *lab.Config) {
		c.Topology, c.Unlimited, c.RateMbit, c.QueueBytes, c.BurstBytes = top, false, 50, 250_000, 20_000
		c.SRv6, c.Meter = true, &lab.Meter{ECNBytes: 15_000}
	})
	for _, c := range ecnCases {
		n.run(c.name, nil, func(n *network) {
			for _, host := range append(c.from[:], ecnTo[:]...) {
				d := n.weft(host, "policy: presto\nfailures: {probes: false, updates: false}\ntopology: "+top.String()+"\nencapsulation: "+c.encapsulation+"\n")
				defer d.end(unix.SIGTERM)
			}
			without := n.crowd(c.from, "0", c.crowded, c.towards)
			with := n.crowd(c.from, "1", c.crowded, c.towards)
			n.Logf("without ECN %+v\nwith %+v", without, with)
			if without.marks > 0 || without.delivered > 0 {
				n.Errorf("without ECN: %+v", without)
			}
			if with.marks < 5 || with.delivered < 5 {
				n.Errorf("with ECN: %d packets marked, of which the senders were told of %d", with.marks, with.delivered)
			}
			if with.drops > 0 || with.queue > without.queue/2 {
				n.Errorf("with ECN the queue has %d bytes and %d packets are dropped, without %d and %d", with.queue, with.drops, without.queue, without.drops)
			}
		})
	}
}

// crowded is what is seen at a port, and of the TCP that crowds it.
type crowded struct {
	queue     uint64 // bytes, on average
	marks     uint64
	drops     uint64
	delivered uint32 // packets that senders were told of as marked
}

// crowd has two connections share a port for about a second.
func (n *network) crowd(from [2]string, ecn, at, towards string) (c crowded) {
	n.Helper()
	id, port := n.portTo(at, towards)
	before := n.meter(id, port)
	var streams []*stream
	for i := range from {
		for _, host := range []string{from[i], ecnTo[i]} {
			n.shell(host, "sysctl -qw net.ipv4.tcp_ecn="+ecn)
		}
		streams = append(streams, n.stream(from[i], ecnTo[i]))
	}
	for _, s := range streams {
		n.cubic(s.a)
		s.a.SetWriteBuffer(256 << 10) // enough to fill the queue, and soon sent at the end
		s.moves("at first", 600_000)
	}
	settled := n.meter(id, port)
	const rounds = 25
	for range rounds {
		c.queue += n.meter(id, port).Length / rounds
		time.Sleep(8 * time.Millisecond)
	}
	after := n.meter(id, port)
	c.marks, c.drops = after.Marks-before.Marks, after.Drops-settled.Drops
	for _, s := range streams {
		raw, err := s.a.SyscallConn()
		if err != nil {
			n.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			var info *unix.TCPInfo
			if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				c.delivered += info.Delivered_ce
			}
		})
		if err != nil {
			n.Fatal(err)
		}
	}
	for _, s := range streams {
		s.end()
	}
	return c
}

// cubic has a connection go by cubic, which heeds marks, as not every algorithm does.
func (n *network) cubic(c syscallConn) {
	n.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		n.Fatal(err)
	}
	raw.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
	if err != nil {
		n.Fatal(err)
	}
}

// portTo is the number of a switch's port to another.
func (n *network) portTo(at, to string) (topology.NodeID, int) {
	n.Helper()
	id := n.node(at).ID
	for i, p := range n.lab.Config.Topology.Ports(id) {
		if p.Peer == n.node(to).ID {
			return id, i
		}
	}
	n.Fatalf("%s has no port to %s", at, to)
	return 0, 0
}

func (n *network) meter(id topology.NodeID, port int) fabric.PortMeter {
	n.Helper()
	all, err := n.lab.PortMeters(id)
	if err != nil {
		n.Fatal(err)
	}
	return all[port]
}
