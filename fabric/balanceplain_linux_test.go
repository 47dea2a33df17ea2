package fabric

import (
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// The kernel hashes the five-tuple of a packet that the program leaves to it, whatever hash
// the sender's socket has given it.
func TestBalance_plainByFiveTuple(t *testing.T) {
	ns, host := kerneltest.Namespace(t, "balance"), kerneltest.Namespace(t, "host")
	kerneltest.Shell(t, ns, `set -e
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1
ip link add p0 type veth peer name q0 netns `+host+`
ip link add p1 type veth peer name q1
ip link add p2 type veth peer name q2
for i in p0 p1 p2 q1 q2; do ip link set $i up; done
ip addr add 10.0.0.1/24 dev p0
ip neigh add 10.1.0.1 lladdr 02:00:00:00:00:01 dev p1
ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:02 dev p2
ip route add 10.8.0.0/16 table 100 nexthop via 10.1.0.1 dev p1 onlink nexthop via 10.1.0.2 dev p2 onlink
ip rule add to 10.8.0.0/16 lookup 100`)
	kerneltest.Shell(t, host, "set -e; ip link set lo up; ip link set q0 up; ip addr add 10.0.0.2/24 dev q0; ip route add default via 10.0.0.1")
	sent := func() (bytes [2]uint64) {
		for i := range bytes {
			link, err := netlink.LinkByName(fmt.Sprintf("p%d", 1+i))
			if err != nil {
				t.Fatal(err)
			}
			bytes[i] = link.Attrs().Statistics.TxBytes
		}
		return bytes
	}
	const packets, size = 64, 1000
	// used counts the ports that packets of one five-tuple take, each of another socket.
	used := func() (n int) {
		var before [2]uint64
		in := func(f func()) {
			if err := kernel.InNamespace(ns, func() error { f(); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		in(func() { before = sent() })
		if err := kernel.InNamespace(host, func() error {
			for range packets {
				c, err := net.DialUDP("udp4", &net.UDPAddr{Port: 5000}, &net.UDPAddr{IP: net.IPv4(10, 8, 0, 1), Port: 6000})
				if err != nil {
					return err
				}
				c.Write(make([]byte, size))
				c.Close()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		kerneltest.Within(t, kerneltest.Patience, "all packets are forwarded", func() (all bool) {
			in(func() {
				after := sent()
				all = after[0]+after[1]-before[0]-before[1] >= packets*size
				n = 0
				for i := range after {
					if after[i]-before[i] >= 3*size { // the devices' own packets are fewer
						n++
					}
				}
			})
			return all
		})
		return n
	}
	if n := used(); n != 2 {
		t.Fatalf("by the sockets' hashes %d ports are used, want 2", n)
	}
	var b *Balance
	if err := kernel.InNamespace(ns, func() (err error) {
		b, err = AttachBalance(BalanceConfig{Rule: "rrb", Ports: []MeterPort{{Name: "p0"}, {Name: "p1"}, {Name: "p2"}}})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := used(); n != 1 {
		t.Errorf("by the five-tuple %d ports are used, want 1", n)
	}
}
