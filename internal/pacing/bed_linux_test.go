package pacing

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/qcn"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

const mbit = 1e6 / 8

// bed is a fabric in which h0.0.2 sends to h1.0.2 by e0.0, a0.1, c1.1, a1.1 and e1.0.
type bed struct {
	*lab.Lab
	t        *testing.T
	from, to topology.Node
}

func newBed(t *testing.T, rates string) *bed {
	t.Helper()
	slowtest.System(t)
	kerneltest.NeedRoot(t)
	cfg := lab.Config{Name: kerneltest.LabName("q"), Topology: kerneltest.Topology(t, "fat-tree:k=2,host-rate=100,"+rates)}
	l, err := lab.Hold(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	hosts := kerneltest.Hosts(l.Config.Topology)
	return &bed{l, t, hosts[0], hosts[1]}
}

func (b *bed) do(id topology.NodeID, f func() error) {
	b.t.Helper()
	if err := b.Do(id, f); err != nil {
		b.t.Fatal(err)
	}
}

// port is a congestion point with the queue behind it.
type port struct {
	id     topology.NodeID
	number int
	meter  *fabric.Meter
	teller *fabric.Teller
}

// congestionPoint meters a port and tells senders of it.
func (b *bed) congestionPoint(name string, number int, key func() (uint8, []byte)) *port {
	b.t.Helper()
	p := &port{id: kerneltest.Node(b.t, b.Config.Topology, name).ID, number: number}
	b.do(p.id, func() (err error) {
		p.meter, err = fabric.AttachMeter(fabric.MeterConfig{Ports: []fabric.MeterPort{{
			Name: fmt.Sprintf("p%d", number), QCN: fabric.QCN{Target: fabric.QueueLength{Time: 6 * time.Millisecond}, Seed: 1},
		}}})
		if err != nil {
			return err
		}
		p.teller, err = p.meter.Tell(fabric.TellerConfig{Key: key})
		return err
	})
	b.t.Cleanup(func() {
		if err := errors.Join(p.teller.Close(), p.meter.Close()); err != nil {
			b.t.Error(err)
		}
	})
	return p
}

// reactionPoints opens those of the sender; its links have 100 Mbit/s.
func (b *bed) reactionPoints(secret func(uint8) []byte) (h *Host) {
	b.t.Helper()
	b.do(b.from.ID, func() (err error) {
		h, err = Open(Config{Address: b.from.Addr, Secret: secret,
			Reactions: qcn.Config{Floor: 0.2 * mbit, Limit: 100 * mbit, Increase: 0.1 * mbit}})
		return err
	})
	b.t.Cleanup(func() { h.Close() })
	return h
}

// stream has the sender send as fast as its TCP (Reno) can. It returns the connection.
func (b *bed) stream() *net.TCPConn {
	b.t.Helper()
	var listener net.Listener
	b.do(b.to.ID, func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(b.to.Addr, 0).String())
		return err
	})
	go func() {
		defer listener.Close()
		if c, err := listener.Accept(); err == nil {
			defer c.Close()
			io.Copy(io.Discard, c)
		}
	}()
	var conn net.Conn
	b.do(b.from.ID, func() (err error) {
		conn, err = net.Dial("tcp4", listener.Addr().String())
		return err
	})
	c := conn.(*net.TCPConn)
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(err, raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
		}))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	go func() {
		for payload := make([]byte, 1<<16); ; {
			if _, err := c.Write(payload); err != nil {
				return
			}
		}
	}()
	return c
}

// measured is what was seen of a port.
type measured struct {
	mean, p99, mbit float64 // bytes of queue, Mbit/s
	drops           uint64
}

func (b *bed) measure(p *port, d time.Duration) (m measured) {
	b.t.Helper()
	read := func() fabric.PortMeter {
		all, err := p.meter.Ports()
		if err != nil {
			b.t.Fatal(err)
		}
		return all[0]
	}
	before, start := read(), time.Now()
	var queue []float64
	for time.Since(start) < d {
		ports, err := b.PortBytes(p.id)
		if err != nil {
			b.t.Fatal(err)
		}
		queue = append(queue, float64(ports[p.number].Backlog))
		m.mean += float64(ports[p.number].Backlog)
		time.Sleep(time.Millisecond)
	}
	after := read()
	slices.Sort(queue)
	m.mean /= float64(len(queue))
	m.p99 = queue[len(queue)*99/100]
	m.mbit = float64(after.Bytes-before.Bytes) / time.Since(start).Seconds() / mbit
	m.drops = after.Drops - before.Drops
	return m
}

func (m measured) String() string {
	return fmt.Sprintf("queue mean %.0f, p99 %.0f bytes; %.2f Mbit/s; %d drops", m.mean, m.p99, m.mbit, m.drops)
}

// secretOf is a secret that only key 3 has.
func secretOf(key uint8) []byte {
	if key == 3 {
		return []byte("0123456789abcdef0123456789abcdef")
	}
	return nil
}

func signing() (uint8, []byte) { return 3, secretOf(3) }
