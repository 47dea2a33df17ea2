package pacing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/encap"
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

// Four connections of the kernel's TCP share a link of 20 Mbit/s with 75,000 bytes of queue.
// With reaction points the queue is far shorter than with tail drop and the link stays in use;
// where the messages are not believed (they are not signed), it is as long as before. The log
// has the table: -v prints it.
func TestHost_shortensTheQueue(t *testing.T) {
	b := newBed(t, "fabric-rate=20,core-rate=100")
	p := b.congestionPoint("e0.0", 1, signing)
	for range 4 {
		b.stream()
	}
	kerneltest.OnTime(t, func() string {
		time.Sleep(time.Second)
		tail := b.measure(p, 2*time.Second)
		h := b.reactionPoints(secretOf)
		time.Sleep(time.Second)
		slowed := b.measure(p, 2*time.Second)
		stats := h.Stats()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		deaf := b.reactionPoints(func(uint8) []byte { return nil })
		time.Sleep(time.Second)
		ignored := b.measure(p, 2*time.Second)
		deafStats := deaf.Stats()
		if err := deaf.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("tail drop:       %v", tail)
		t.Logf("QCN:             %v; %+v; switch %+v", slowed, stats, p.teller.Stats())
		t.Logf("QCN, not signed: %v; %+v", ignored, deafStats)
		switch {
		case stats.Believed == 0 || stats.Malformed != 0:
			return "no message was believed"
		case deafStats.Believed != 0 || deafStats.Malformed == 0:
			return "messages without a known key were believed"
		case slowed.mean > tail.mean/2 || slowed.mean > ignored.mean/2:
			return "the queue is not half as long with QCN"
		case slowed.mbit < 0.7*tail.mbit:
			return "the link is not used with QCN"
		}
		return ""
	})
}

// Of two congestion points on the path the flow obeys that of the slower link, wherever that is
// (thesis §5.2.2: several bumps).
func TestHost_severalBumps(t *testing.T) {
	for _, rates := range []string{"fabric-rate=30,core-rate=10", "fabric-rate=10,core-rate=30"} {
		t.Run(rates, func(t *testing.T) {
			b := newBed(t, rates)
			first, second := b.congestionPoint("e0.0", 1, nil), b.congestionPoint("a0.1", 1, nil)
			h := b.reactionPoints(nil)
			b.stream()
			kerneltest.OnTime(t, func() string {
				time.Sleep(time.Second)
				at := []measured{b.measure(first, time.Second), b.measure(second, time.Second)}
				told := []uint64{first.teller.Stats().Told, second.teller.Stats().Told}
				t.Logf("first: %v, %d told; second: %v, %d told; %+v", at[0], told[0], at[1], told[1], h.Stats())
				slow := 0
				if rates == "fabric-rate=30,core-rate=10" {
					slow = 1
				}
				switch {
				case h.Stats().Believed == 0 || told[slow] == 0:
					return "the slower link's congestion point is not heard"
				case at[slow].mbit < 4 || at[slow].mbit > 10.5:
					return "the slower link does not set the rate"
				case at[slow].mean > 75_000/2/2: // of 10 Mbit/s: half of what tail drop would fill
					return "the slower link's queue is long"
				}
				return ""
			})
		})
	}
}

// Messages that an outsider makes up slow nobody: the numbers are not in flight, or the
// packet is another host's.
func TestHost_believesNoOutsider(t *testing.T) {
	b := newBed(t, "fabric-rate=100,core-rate=100")
	h := b.reactionPoints(nil)
	c := b.stream()
	local, remote := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	time.Sleep(200 * time.Millisecond)
	b.do(b.to.ID, func() error { return forge(local, remote, b.from.Addr, 500) })
	kerneltest.Within(t, kerneltest.Patience, "the messages are read", func() bool {
		s := h.Stats()
		return s.Stale+s.Dropped+s.Overflow+s.Unknown >= 400 && s.Foreign > 0 && s.Malformed > 0
	})
	if s := h.Stats(); s.Believed != 0 || s.Limited != 0 {
		t.Errorf("%+v", s)
	}
}

// forge sends made-up messages about a connection, and such as are about no packet of the
// host's, or no messages at all. The numbers are far from any that is in flight.
func forge(local, remote netip.AddrPort, to netip.Addr, n int) error {
	c, err := net.Dial("udp4", netip.AddrPortFrom(to, encap.FeedbackPort).String())
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		f := encap.Feedback{Level: 63}
		f.Packet[0] = 0x45
		from, dest := local.Addr().Unmap().As4(), remote.Addr().Unmap().As4()
		copy(f.Packet[12:], from[:])
		copy(f.Packet[16:], dest[:])
		binary.BigEndian.PutUint16(f.Packet[20:], local.Port())
		binary.BigEndian.PutUint16(f.Packet[22:], remote.Port())
		switch i % 100 {
		case 1:
			f.Packet[15]++ // another host's
		case 2:
			f.Packet[20]++ // another connection's
		}
		message, err := encap.AppendFeedback(nil, f, 0, nil)
		if err != nil {
			return err
		}
		if i%100 == 3 {
			message = message[:20]
		}
		if _, err := c.Write(message); err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
	return nil
}
