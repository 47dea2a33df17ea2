package uplink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"weft/internal/hostsetup"
	"weft/internal/kernel/kerneltest"
	"weft/lab"
	"weft/stack"
	"weft/topology"
)

// network is a lab that all tests share, one after the other. Its hosts' uplinks
// are called p0.
type network struct {
	*lab.Lab
	topology *topology.Topology
}

var testLab = sync.OnceValues(func() (network, error) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		return network{}, err
	}
	l, err := lab.Up(context.Background(), lab.Config{Name: kerneltest.SharedLab(), Topology: top, Unlimited: true, SRv6: true})
	if err != nil {
		return network{}, err
	}
	// A directory's name is the number of its namespace. The kernel gives the number of a
	// namespace that is gone to a new one, and daemons leave files in theirs.
	for h := range top.Hosts() {
		err = errors.Join(err, l.Do(h.ID, func() error {
			dir, err := hostsetup.Dir()
			if err != nil {
				return err
			}
			return os.RemoveAll(dir)
		}))
	}
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

// do runs f in a host's namespace.
func (n network) do(t *testing.T, host topology.NodeID, f func() error) {
	t.Helper()
	if err := n.Do(host, f); err != nil {
		t.Fatal(err)
	}
}

// open opens a Device on a host and runs a Host on it.
func (n network) open(t *testing.T, host topology.NodeID, policyName string, options ...func(*stack.Config)) (*Device, *stack.Host) {
	t.Helper()
	var d *Device
	var h *stack.Host
	n.do(t, host, func() (err error) {
		d, h, err = n.tryOpen(host, policyName, options...)
		return err
	})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, h
}

// tryOpen is open, on the calling thread and for the caller to close.
func (n network) tryOpen(host topology.NodeID, policyName string, options ...func(*stack.Config)) (*Device, *stack.Host, error) {
	addr := n.topology.EmbeddedAddr(host)
	c := stack.Config{Address: addr, Topology: n.topology, Policy: policyName}
	for _, change := range options {
		change(&c)
	}
	h, d, err := NewHost(c, Options{})
	return d, h, err
}

// hung is when a transfer is taken to have stopped for good.
const hung = time.Minute

// transfer sends bytes from one end of a new connection to the other, which
// must be the same and the end there.
func transfer(t *testing.T, dial func() (net.Conn, error), l net.Listener, size int) {
	t.Helper()
	sum := make(chan []byte, 1)
	go func() {
		h := sha256.New()
		if conn, err := l.Accept(); err == nil {
			conn.SetDeadline(time.Now().Add(hung))
			if _, err := io.Copy(h, conn); err != nil {
				t.Errorf("receive: %v", err)
			}
			conn.Close()
		}
		sum <- h.Sum(nil)
	}()
	conn, err := dial()
	if err != nil {
		l.Close()
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(hung))
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(conn, h), rand.NewChaCha8([32]byte{1}), int64(size)); err != nil {
		t.Errorf("send: %v", err)
	}
	conn.Close()
	if !bytes.Equal(<-sum, h.Sum(nil)) {
		t.Errorf("%d bytes were sent, others arrived", size)
	}
}

// transferBetween is transfer from one Host to another.
func transferBetween(t *testing.T, from, to *stack.Host, size int) {
	t.Helper()
	l, err := to.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	transfer(t, func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), hung)
		defer cancel()
		return from.DialContext(ctx, "tcp", l.Addr().String())
	}, l, size)
}

// kernelDial has the kernel of a host connect.
func (n network) kernelDial(host topology.NodeID, to net.Addr) func() (net.Conn, error) {
	return func() (conn net.Conn, err error) {
		err = n.Do(host, func() error {
			conn, err = net.DialTimeout("tcp4", to.String(), hung)
			return err
		})
		return conn, err
	}
}

// shares are the bytes that went to each bouncing switch that got any.
func shares(t *testing.T, d *Device) map[netip.Addr]uint64 {
	t.Helper()
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[netip.Addr]uint64)
	for _, b := range s.Bounces {
		if b.Bytes > 0 {
			got[b.Addr] = b.Bytes
		}
	}
	return got
}
