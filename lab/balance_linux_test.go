package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// balanced is a leaf with four uplinks, and a host behind another leaf.
type balanced struct {
	*Lab
	t        testing.TB
	src, dst topology.Node
	leaf     topology.Node
	uplinks  []int // ports of the leaf
}

func upBalanced(t testing.TB, rule string, rate float64) *balanced {
	t.Helper()
	l := upLab(t, Config{Name: kerneltest.LabName("b"), Topology: kerneltest.Topology(t, "leaf-spine:leaves=2,spines=4,hosts=1"),
		RateMbit: rate, Balance: rule})
	hosts := kerneltest.Hosts(l.Config.Topology)
	b := &balanced{Lab: l, t: t, src: hosts[0], dst: hosts[len(hosts)-1]}
	b.leaf = l.Config.Topology.Node(l.Config.Topology.Ports(b.src.ID)[0].Peer)
	for _, p := range l.Config.Topology.Ports(b.leaf.ID) {
		if l.Config.Topology.Node(p.Peer).Layer != topology.LayerHost {
			b.uplinks = append(b.uplinks, p.Index)
		}
	}
	return b
}

// sent returns the bytes that the leaf has sent by each uplink.
func (b *balanced) sent() (bytes []uint64) {
	b.t.Helper()
	ports, err := b.PortBytes(b.leaf.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, i := range b.uplinks {
		bytes = append(bytes, ports[i].TxBytes)
	}
	return bytes
}

// connect opens a TCP connection of the hosts' kernels, whose receiver reads all and reports
// how much that was.
func (b *balanced) connect() (c net.Conn, received chan int64) {
	b.t.Helper()
	var l net.Listener
	err := b.Do(b.dst.ID, func() (err error) {
		l, err = net.Listen("tcp4", netip.AddrPortFrom(b.dst.Addr, 0).String())
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	received = make(chan int64, 1)
	go func() {
		defer l.Close()
		in, err := l.Accept()
		if err != nil {
			received <- -1
			return
		}
		defer in.Close()
		n, _ := io.Copy(io.Discard, in)
		received <- n
	}()
	err = b.Do(b.src.ID, func() (err error) {
		c, err = (&net.Dialer{Timeout: kerneltest.Patience}).Dial("tcp4", l.Addr().String())
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return c, received
}

// transfer sends bytes over one connection.
func (b *balanced) transfer(n int64) {
	b.t.Helper()
	c, received := b.connect()
	c.SetDeadline(time.Now().Add(kerneltest.Patience))
	if _, err := io.CopyN(c, zeros{}, n); err != nil {
		b.t.Fatal(err)
	}
	c.Close()
	if got := <-received; got != n {
		b.t.Fatalf("%d bytes arrived, want %d", got, n)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// One TCP connection takes one uplink by the kernel's routes, and all by a rule for each
// packet.
func TestBalance_oneConnectionOverAllUplinks(t *testing.T) {
	slowtest.System(t)
	for _, c := range []struct {
		rule string
		all  bool
	}{{"ecmp", false}, {"rb", true}, {"rrb", true}, {"drb", true}, {"drill", true}} {
		t.Run(c.rule, func(t *testing.T) {
			b := upBalanced(t, c.rule, 100)
			const size = 1 << 20
			before := b.sent()
			b.transfer(size)
			used := 0
			after := b.sent()
			for i := range after {
				if after[i]-before[i] > size/20 {
					used++
				}
			}
			if want := map[bool]int{false: 1, true: 4}[c.all]; used != want {
				t.Errorf("%d uplinks were used, want %d: before %v, after %v", used, want, before, after)
			}
			s, err := b.Balanced(b.leaf.ID)
			if err != nil || (s != nil) != c.all {
				t.Fatalf("%+v, %v", s, err)
			}
			if c.all && (s.Chosen < size/3200 || s.Destinations == 0 || s.LeftOut != 0 || s.Rule != fabric.CanonicalBalance(c.rule)) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Where a next hop dies, nothing goes any more, and a connection goes on.
func TestBalance_deadNextHop(t *testing.T) {
	b := upBalanced(t, "drb", 100)
	top := b.Config.Topology
	c, received := b.connect()
	defer c.Close()
	stop, ended := make(chan struct{}), make(chan int64, 1)
	go func() {
		var n int64
		for {
			select {
			case <-stop:
				c.Close()
				ended <- n
				return
			default:
			}
			c.SetDeadline(time.Now().Add(kerneltest.Patience))
			m, err := c.Write(make([]byte, 10000))
			n += int64(m)
			if err != nil {
				c.Close()
				ended <- n
				return
			}
		}
	}()
	moves := func(what string, want []bool) {
		t.Helper()
		before := b.sent()
		kerneltest.Within(t, kerneltest.Patience, what, func() bool {
			after := b.sent()
			for i := range after {
				if want[i] && after[i]-before[i] < 50_000 {
					return false
				}
			}
			return true
		})
		after := b.sent()
		for i := range after {
			if !want[i] && after[i] != before[i] {
				t.Errorf("%s: %d bytes by the dead uplink %d", what, after[i]-before[i], i)
			}
		}
	}
	moves("all uplinks are used", []bool{true, true, true, true})
	link := top.Ports(b.leaf.ID)[b.uplinks[1]].Link
	mustFail(t, b.Lab, top.LinkName(link), FailLoud)
	moves("the other three are used", []bool{true, false, true, true})
	mustHeal(t, b.Lab)
	moves("all are used again", []bool{true, true, true, true})
	close(stop)
	if n, got := <-ended, <-received; n != got {
		t.Errorf("%d bytes sent, %d received", n, got)
	}
}

// A lab that balances is found as it was built, and mended if somebody has taken the
// programs or the setting away.
func TestBalance_repair(t *testing.T) {
	b := upBalanced(t, "rrb", 100)
	again := func(want int) *Lab {
		t.Helper()
		l, err := Up(context.Background(), b.Config)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Repaired) != want {
			t.Errorf("repaired %q, want %d", l.Repaired, want)
		}
		return l
	}
	again(0).Close()
	for what, damage := range map[string]func() error{
		"programs gone": func() error {
			_, err := fabric.DetachBalance([]string{fmt.Sprintf(fabric.DefaultPortFormat, b.uplinks[0])})
			return err
		},
		"not heeded": func() error {
			_, _, err := kernel.SetSysctl(kernel.Sysctl{Key: "net.ipv4.fib_multipath_hash_policy", Value: "0"})
			return err
		},
	} {
		if err := b.Do(b.leaf.ID, damage); err != nil {
			t.Fatal(what, err)
		}
		l := again(1)
		if err := l.Do(b.leaf.ID, func() error {
			if !fabric.HeedsBalance() {
				t.Error(what, ": the kernel does not heed the programs")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

// BenchmarkBalance_goodput is one cubic connection over four uplinks of 20 Mbit/s, Mbit/s,
// from a host with a faster link.
func BenchmarkBalance_goodput(b *testing.B) {
	for _, rule := range []string{"routes", "ecmp", "rb", "rrb", "drb", "letflow", "drill"} {
		b.Run(rule, func(b *testing.B) {
			l := upLab(b, Config{Name: kerneltest.LabName("b"), Balance: rule,
				Topology: kerneltest.Topology(b, "leaf-spine:leaves=2,spines=4,hosts=1,host-rate=100,fabric-rate=20")})
			hosts := kerneltest.Hosts(l.Config.Topology)
			x := &balanced{Lab: l, t: b, src: hosts[0], dst: hosts[len(hosts)-1]}
			for b.Loop() {
				const size = 30 << 20
				start := time.Now()
				x.transfer(size)
				b.ReportMetric(size*8/1e6/time.Since(start).Seconds(), "Mbit/s")
			}
		})
	}
}
