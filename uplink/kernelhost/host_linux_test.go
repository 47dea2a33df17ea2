package kernelhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/hostsetup"
	"weft/internal/kernel/kerneltest"
	"weft/lab"
	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

// patience is how long a test waits for what takes a tenth of a second.
const patience = time.Minute

// network is a lab that all tests share.
type network struct {
	*lab.Lab
	topology *topology.Topology
}

var testLab = sync.OnceValues(func() (network, error) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		return network{}, err
	}
	l, err := lab.Up(context.Background(), lab.Config{Name: kerneltest.SharedLab(), Topology: top, Unlimited: true})
	return network{l, top}, err
})

func TestMain(m *testing.M) {
	kerneltest.Main(m, func(l string) error {
		_, err := lab.Down(l)
		return err
	})
}

func newNetwork(t *testing.T) network {
	t.Helper()
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	n, err := testLab()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n network) host(t *testing.T, name string) topology.Node {
	t.Helper()
	node, err := n.topology.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// do runs f in a host's namespace.
func (n network) do(t *testing.T, host string, f func() error) {
	t.Helper()
	if err := n.Do(n.host(t, host).ID, f); err != nil {
		t.Fatal(err)
	}
}

// open starts a Host, which probes.
func (n network) open(t *testing.T, host string) *Host {
	t.Helper()
	var h *Host
	n.do(t, host, func() (err error) {
		h, err = New(stack.Config{Address: n.host(t, host).Addr, Topology: n.topology, Policy: "presto", Liveness: &stack.Liveness{}}, uplink.Options{})
		return err
	})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// settings are all of a host that a Host changes.
func (n network) settings(t *testing.T, host string) (out string) {
	t.Helper()
	n.do(t, host, func() error {
		b, err := exec.Command("sh", "-c", `ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; ip -d link show p0
			ip link | grep -c mtu; grep -rs . /proc/sys/net/ipv4/conf /proc/sys/net/ipv4/tcp_min_rtt_wlen; tc filter show dev p0 ingress; tc filter show dev p0 egress`).Output()
		out = string(b)
		return err
	})
	return out
}

// wantRestored checks that nothing of weft's is left, programs included.
func (n network) wantRestored(t *testing.T, host, before string) {
	t.Helper()
	if after := n.settings(t, host); after != before {
		t.Errorf("%s: before\n%s\nafter\n%s", host, before, after)
	}
	n.do(t, host, func() error {
		left, err := hostsetup.Cleanup()
		if len(left) > 0 {
			t.Errorf("%s: left: %s", host, strings.Join(left, ", "))
		}
		return err
	})
}

// send sends bytes over a connection, and wants the same at the other end.
func send(t *testing.T, from, to net.Conn, size int64) {
	t.Helper()
	from.SetDeadline(time.Now().Add(patience))
	to.SetDeadline(time.Now().Add(patience))
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		if _, err := io.CopyN(h, to, size); err != nil {
			t.Errorf("receive: %v", err)
		}
		sum <- h.Sum(nil)
	}()
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(from, h), rand.NewChaCha8([32]byte{byte(size)}), size); err != nil {
		t.Errorf("send: %v", err)
	}
	if !bytes.Equal(<-sum, h.Sum(nil)) {
		t.Errorf("%d bytes were sent, others arrived", size)
	}
}

// connect connects two hosts by what listens at one and dials at the other.
func (n network) connect(t *testing.T, from, to string, dial func(network, address string) (net.Conn, error), listen func(network, address string) (net.Listener, error)) (a, b net.Conn) {
	t.Helper()
	var l net.Listener
	n.do(t, to, func() (err error) {
		l, err = listen("tcp", n.host(t, to).Addr.String()+":0")
		return err
	})
	defer l.Close()
	n.do(t, from, func() (err error) {
		a, err = dial("tcp", l.Addr().String())
		return err
	})
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// shares are the bytes that a Host has sent to each bouncing switch.
func shares(t *testing.T, h *Host) map[netip.Addr]uint64 {
	t.Helper()
	s, err := h.Stats()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[netip.Addr]uint64)
	for _, b := range s.Bounces {
		if b.Bytes > 0 {
			all[b.Addr] = b.Bytes
		}
	}
	return all
}

// Two Hosts use all paths of the kernel's own connections. In the middle of one, a core is no
// longer used whose link dies silently, or which they are told is dead; it is again when it is
// back. A plain host takes part. Close leaves nothing.
func TestHost(t *testing.T) {
	n := newNetwork(t)
	const near, far, plain = "h0.0.2", "h3.1.3", "h2.0.2"
	before, beforeFar := n.settings(t, near), n.settings(t, far)
	from, to := n.open(t, near), n.open(t, far)
	a, b := n.connect(t, near, far, from.Dial, to.Listen)
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); {
			if time.Now().After(end) {
				t.Fatalf("does not happen: %s", what)
			}
			send(t, a, b, 4<<20)
			send(t, b, a, 1<<20)
		}
	}
	until("both send by all four cores", func() bool { return len(shares(t, from)) == 4 && len(shares(t, to)) == 4 })

	core := n.host(t, "c1.1")
	var links []topology.LinkID
	for _, p := range n.topology.Ports(core.ID) {
		links = append(links, p.Link)
	}
	const link = "a0.2-c1.1" // below it
	defer n.Heal()           // of what a failed test leaves to the next
	broken := make(chan error, 1)
	go func() { _, err := n.Fail(link, lab.FailSilent); broken <- err }()
	send(t, a, b, 16<<20)
	if err := <-broken; err != nil {
		t.Fatal(err)
	}
	until("probes find a dead link, which nobody tells of", func() bool {
		was := shares(t, from)[core.Addr]
		send(t, a, b, 4<<20)
		return shares(t, from)[core.Addr] == was
	})
	if _, err := n.Heal(link); err != nil {
		t.Fatal(err)
	}
	healed := shares(t, from)[core.Addr]
	until("the core is used again after the link is healed", func() bool { return shares(t, from)[core.Addr] > healed })

	failed := make(chan error, 1)
	go func() {
		failed <- errors.Join(from.SetTopology(n.topology.Without(links...)), to.SetTopology(n.topology.Without(links...)))
	}()
	send(t, a, b, 16<<20)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	was := shares(t, from)[core.Addr]
	send(t, a, b, 4<<20)
	if now := shares(t, from); now[core.Addr] != was || len(now) != 4 {
		t.Errorf("the dead core had %d bytes and has %v", was, now)
	}
	if err := from.SetTopology(n.topology); err != nil {
		t.Fatal(err)
	}
	until("the core is used again", func() bool { return shares(t, from)[core.Addr] > was })

	c, d := n.connect(t, near, plain, from.Dial, net.Listen)
	send(t, c, d, 1<<20)
	send(t, d, c, 1<<20)

	if s, err := from.Stats(); err != nil || !s.Working || s.Trouble != "" || s.Straight == 0 || s.Dropped != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	n.do(t, near, func() error { // it has the host's lock
		_, err := New(stack.Config{Address: n.host(t, near).Addr, Topology: n.topology}, uplink.Options{})
		if err == nil || !strings.Contains(err.Error(), "in use by weft, process") {
			t.Errorf("a second one: %v", err)
		}
		return nil
	})
	if err := errors.Join(from.Close(), to.Close()); err != nil {
		t.Error(err)
	}
	n.wantRestored(t, near, before)
	n.wantRestored(t, far, beforeFar)
	if _, err := from.Stats(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("counters of a closed one: %v", err)
	}
	if err := from.SetTopology(n.topology); !errors.Is(err, net.ErrClosed) {
		t.Errorf("SetTopology of a closed one: %v", err)
	}
}

// Sockets are the kernel's: so are the errors and the addresses. Close ends all of them.
func TestHost_sockets(t *testing.T) {
	n := newNetwork(t)
	const at = "h1.0.2"
	before := n.settings(t, at)
	h := n.open(t, at)
	own := n.host(t, at).Addr.String()
	n.do(t, at, func() error {
		if _, err := h.Dial("tcp", own+":9"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
		if _, err := h.Dial("tcp6", "[::1]:9"); !errors.As(err, new(net.UnknownNetworkError)) {
			t.Errorf("without IPv6: %v", err)
		}
		if _, err := h.DialContext(stack.WithPolicy(t.Context(), "drb"), "tcp", own+":9"); err == nil || !strings.Contains(err.Error(), "WithPolicy") {
			t.Errorf("with a policy: %v", err)
		}
		if _, err := h.Listen("tcp", "127.0.0.1:0"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("listen elsewhere: %v", err)
		}
		if _, err := h.Listen("udp", ":0"); !errors.As(err, new(net.UnknownNetworkError)) {
			t.Errorf("listen by UDP: %v", err)
		}
		l, err := h.Listen("tcp", ":0")
		if err != nil {
			return err
		}
		if _, err := h.Listen("tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the same port: %v", err)
		}
		var asked []string
		h.Control = func(network, _ string, _ syscall.RawConn) error {
			asked = append(asked, network)
			return nil
		}
		p, err := h.ListenPacket("udp", ":0")
		if err != nil {
			return err
		}
		u, err := h.Dial("udp", p.LocalAddr().String())
		if err != nil {
			return err
		}
		u.Write([]byte("x"))
		b := make([]byte, 2)
		if size, from, err := p.ReadFrom(b); err != nil || size != 1 || from.String() != u.LocalAddr().String() {
			t.Errorf("%d bytes from %v: %v", size, from, err)
		}
		c, err := h.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		if !strings.HasPrefix(c.LocalAddr().String(), own+":") {
			t.Errorf("connected from %v", c.LocalAddr())
		}
		if !slices.Equal(asked, []string{"udp4", "udp4", "tcp4"}) {
			t.Errorf("Control was asked for %q", asked)
		}
		h.Control = func(string, string, syscall.RawConn) error { return syscall.EPERM }
		if _, err := h.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.EPERM) {
			t.Errorf("Control refuses: %v", err)
		}
		if _, err := h.Listen("tcp", ":0"); !errors.Is(err, syscall.EPERM) {
			t.Errorf("Control refuses: %v", err)
		}
		h.Control = nil
		d, err := l.Accept()
		if err != nil {
			return err
		}
		d.Close()
		ended := make(chan error, 3)
		if _, err := c.Read(b); err != io.EOF {
			t.Errorf("closed: %v", err)
		}
		go func() { _, err := l.Accept(); ended <- err }()
		go func() { _, _, err := p.ReadFrom(b[:1]); ended <- err }()
		go func() { _, err := u.Read(b[1:]); ended <- err }()
		if err := h.Close(); err != nil {
			return err
		}
		for range 3 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call at Close: %v", err)
			}
		}
		if _, err := h.Dial("tcp", own+":9"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial after Close: %v", err)
		}
		if _, err := h.Listen("tcp", ":0"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen after Close: %v", err)
		}
		return nil
	})
	n.wantRestored(t, at, before)
}

// What goes wrong while it starts leaves nothing.
func TestNew_failureLeavesNothing(t *testing.T) {
	n := newNetwork(t)
	const at = "h1.0.3"
	before := n.settings(t, at)
	n.do(t, at, func() error {
		for want, o := range map[string]uplink.Options{"nosuch0": {Interface: "nosuch0"}, "9000": {MTU: 9000}} {
			h, err := New(stack.Config{Address: n.host(t, at).Addr, Topology: n.topology}, o)
			if err == nil {
				h.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		return nil
	})
	n.wantRestored(t, at, before)
}
