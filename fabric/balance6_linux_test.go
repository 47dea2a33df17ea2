package fabric

import (
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// sixWays is a switch with four ports by which fd00:9::/48 is reached, the last twice as
// often as each other, and a host behind its port p0.
type sixWays struct {
	t        *testing.T
	ns, host string
}

func newSixWays(t *testing.T) *sixWays {
	t.Helper()
	w := &sixWays{t, kerneltest.Namespace(t, "balance"), kerneltest.Namespace(t, "host")}
	script := "set -e; ip link set lo up; sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.accept_dad=0 net.ipv6.fib_multipath_hash_policy=2\n" +
		"ip link add p0 address 02:00:00:00:01:00 type veth peer name q0 netns " + w.host + "; ip link set p0 up; ip addr add fd00:1::1/64 dev p0 nodad\n"
	hops := ""
	for i := 1; i < 5; i++ {
		script += fmt.Sprintf("ip link add p%d type veth peer name q%d; ip link set p%d up; ip link set q%d up; ip neigh add fd00:8::%d lladdr 02:00:00:00:00:0%d dev p%d\n", i, i, i, i, i, i, i)
		hops += fmt.Sprintf(" nexthop via fd00:8::%d dev p%d onlink weight %d", i, i, 1+i/4)
	}
	kerneltest.Shell(t, w.ns, script+"ip -6 route add fd00:9::/48"+hops+"; ip -6 route add fd00:9:0:7::/64 via fd00:8::1 dev p1 onlink")
	kerneltest.Shell(t, w.host, "set -e; ip link set lo up; ip link set q0 up; ip addr add fd00:1::2/64 dev q0 nodad; "+
		// Packets that wait for a neighbour's address are lost, but for the first 200 KB.
		"ip neigh add fd00:1::1 lladdr 02:00:00:00:01:00 dev q0; ip -6 route add default via fd00:1::1")
	return w
}

func (w *sixWays) in(f func() error) {
	w.t.Helper()
	if err := kernel.InNamespace(w.ns, f); err != nil {
		w.t.Fatal(err)
	}
}

const sixSize = 1000

// sent sends packets of one flow to an address and returns how many each port has sent.
func (w *sixWays) sent(to string, packets int) (by [4]int) {
	w.t.Helper()
	return w.sentFrom(0, to, packets)
}

// sentFrom is sent from a port, or 0.
func (w *sixWays) sentFrom(port int, to string, packets int) (by [4]int) {
	w.t.Helper()
	now := func() (bytes [4]uint64) {
		w.in(func() error {
			for i := range bytes {
				link, err := netlink.LinkByName(fmt.Sprintf("p%d", 1+i))
				if err != nil {
					return err
				}
				bytes[i] = link.Attrs().Statistics.TxBytes
			}
			return nil
		})
		return bytes
	}
	before := now()
	err := kernel.InNamespace(w.host, func() error {
		c, err := net.DialUDP("udp6", &net.UDPAddr{Port: port}, &net.UDPAddr{IP: net.ParseIP(to), Port: 9})
		if err != nil {
			return err
		}
		defer c.Close()
		for range packets {
			if _, err := c.Write(make([]byte, sixSize)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	kerneltest.Within(w.t, kerneltest.Patience, "all packets are forwarded", func() bool {
		sum := 0
		for i, bytes := range now() {
			by[i] = int(bytes-before[i]) / sixSize // headers and the devices' own packets are less than a packet
			sum += by[i]
		}
		return sum >= packets
	})
	return by
}

func (w *sixWays) mustPolicy6(want string) {
	w.t.Helper()
	w.in(func() error {
		if have, err := kernel.ReadSysctl(hashPolicies[1]); have != want || err != nil {
			w.t.Errorf("%s is %s, %v, want %s", hashPolicies[1], have, err, want)
		}
		return nil
	})
}

// The kernel's IPv6 heeds what the program chooses: by turns one flow goes by all ports, in
// proportion to their weights, by the routes alone by one, and to one way as the route says.
func TestBalance_six(t *testing.T) {
	w := newSixWays(t)
	const packets = 100
	ports := func(by [4]int) (n int) {
		for _, n1 := range by {
			if n1 >= packets/10 {
				n++
			}
		}
		return n
	}
	w.in(func() error {
		_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicies[1], Value: "1"})
		return err
	})
	if by := w.sent("fd00:9::1", packets); ports(by) != 1 {
		t.Fatalf("by the routes alone a flow goes by %v", by)
	}
	w.in(func() error {
		_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicies[1], Value: "2"})
		return err
	})
	var b *Balance
	w.in(func() (err error) {
		b, err = AttachBalance(balanceOf("rrb"))
		return err
	})
	defer b.Close()
	w.mustPolicy6("1")
	if s, err := b.Stats(); err != nil || s.Destinations != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	by := w.sent("fd00:9::1", packets)
	for i, n := range by {
		want := []int{20, 20, 20, 40}[i]
		if n < want-3 || n > want+3 { // each processor has a turn of its own
			t.Errorf("the ports have sent %v packets, want 20, 20, 20 and 40", by)
		}
	}
	if by := w.sent("fd00:9:0:7::1", packets); by[0] < packets-1 {
		t.Errorf("to one way %v packets went", by)
	}
	// A port that is down gets nothing, before and after the program's tables know.
	kerneltest.Shell(t, w.ns, "ip link set p2 down")
	for _, told := range []bool{false, true} {
		if told {
			w.in(func() error { _, err := b.Repair(); return err })
		}
		if by := w.sent("fd00:9::1", packets); by[1] != 0 || ports(by) != 3 {
			t.Errorf("tables told %v: %v packets, want none by the second port", told, by)
		}
	}
	w.in(func() error {
		if _, _, err := kernel.SetSysctl(kernel.Sysctl{Key: hashPolicies[1], Value: "0"}); err != nil {
			return err
		}
		mended, err := b.RepairSettings()
		if len(mended) != 1 || err != nil {
			t.Errorf("mended %q, %v", mended, err)
		}
		return nil
	})
	w.mustPolicy6("1")
	w.in(b.Detach)
	w.mustPolicy6("0")
}

// Each rule that chooses packet by packet balances one flow of IPv6 over all ports.
func TestBalance_sixByEachRule(t *testing.T) {
	w := newSixWays(t)
	for _, rule := range []string{"drill", "drb", "rb"} {
		var b *Balance
		w.in(func() (err error) {
			b, err = AttachBalance(balanceOf(rule))
			return err
		})
		by := w.sent("fd00:9::1", 200)
		for _, n := range by {
			if n < 10 {
				t.Errorf("%s: the ports have sent %v packets, want all to be used", rule, by)
			}
		}
		w.in(b.Detach)
	}
	w.mustPolicy6("2")
}
