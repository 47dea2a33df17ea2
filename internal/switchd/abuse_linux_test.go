package switchd

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/topoupdate"
)

// forger sends datagrams to the group by a port of a node, as anybody on that
// node could.
type forger struct {
	t     testing.TB
	fd    int
	group unix.SockaddrInet4
}

func (l *testLab) forger(node, port string, ttl int) forger {
	l.t.Helper()
	f := forger{l.t, -1, unix.SockaddrInet4{Port: topoupdate.Port, Addr: topoupdate.Group.As4()}}
	err := l.Do(l.id(node), func() (err error) {
		if f.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err != nil {
			return err
		}
		return errors.Join(unix.BindToDevice(f.fd, port), unix.SetsockoptInt(f.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, ttl))
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { unix.Close(f.fd) })
	return f
}

func (f forger) send(b []byte) {
	if err := unix.Sendto(f.fd, b, 0, &f.group); err != nil && !errors.Is(err, unix.ENOBUFS) {
		f.t.Error(err)
	}
}

// capture returns messages that arrive at a port, as a packet socket sees them.
func (l *testLab) capture(node, port string, n int) (messages [][]byte) {
	l.t.Helper()
	err := l.Do(l.id(node), func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		index, err := portIndex(port)
		if err != nil {
			return err
		}
		const ip = unix.ETH_P_IP>>8 | unix.ETH_P_IP&0xff<<8
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ip, Ifindex: index}); err != nil {
			return err
		}
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20})
		for p := make([]byte, 2000); len(messages) < n; {
			size, from, err := unix.Recvfrom(fd, p, 0)
			if err != nil {
				return err
			}
			if a, ok := from.(*unix.SockaddrLinklayer); ok && a.Pkttype != unix.PACKET_OUTGOING && p[9] == unix.IPPROTO_UDP {
				messages = append(messages, bytes.Clone(p[28:size]))
			}
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return messages
}

var pod = []string{"h0.0.2", "e0.0", "e0.1", "a0.2", "a0.3"}

func withKeys(secret byte) Config {
	c := fast
	c.Multiplier = 50 // busy processors are no dead neighbours
	c.Keys.List = []topoupdate.Key{{ID: 1, Secret: bytes.Repeat([]byte{secret}, 32)}}
	return c
}

func TestAgents_whatIsNotGenuineChangesNothing(t *testing.T) {
	l := upLab(t, "c", "fat-tree:k=4", pod...)
	l.start(withKeys(1))
	l.adjacent()
	edge := l.agents[l.id("e0.0")]
	captured := l.capture("e0.0", "p2", 3)
	honest := l.forger("a0.2", "p0", 255) // p0 of a0.2 leads to p2 of e0.0
	flipped := bytes.Clone(captured[2])
	flipped[len(flipped)-1] ^= 1
	later := bytes.Clone(captured[2])
	later[32] = 0x7F // the counter's first byte: never seen before
	before := edge.Status()
	agg := l.agents[l.id("a0.2")]
	for _, c := range []struct {
		count string
		who   *Agent
		send  func()
	}{
		{"replay", edge, func() { honest.send(captured[0]) }},
		{"mac", edge, func() { honest.send(later) }},
		{"truncated", edge, func() { honest.send(captured[0][:20]) }},
		{"oversized", edge, func() { honest.send(append(bytes.Clone(later), make([]byte, topoupdate.MaxMessage)...)) }},
		{"version", edge, func() { honest.send(make([]byte, 100)) }},
		{"sender", agg, func() { l.forger("e0.0", "p2", 255).send(captured[0]) }}, // a mirror
	} {
		have := c.who.Status().Rejected[c.count]
		c.send()
		l.within(c.count+" is counted", func() bool { return c.who.Status().Rejected[c.count] > have })
	}
	dropped := edge.Status().Neighbours[2].Drops
	for range 10 {
		l.forger("a0.2", "p0", 64).send(later)
	}
	l.within("what came from afar is dropped", func() bool { return edge.Status().Neighbours[2].Drops == dropped+10 })
	after := edge.Status()
	if after.Changes != before.Changes || !slices.Equal(after.Down, before.Down) || after.Flooding.Changed != before.Flooding.Changed {
		t.Errorf("before: %d changes, down %v, after: %d, %v", before.Changes, before.Down, after.Changes, after.Down)
	}
	for _, n := range after.Neighbours[2:] {
		if n.State != "up" || !n.Hears {
			t.Errorf("a neighbour was lost: %+v", n)
		}
	}
}

func TestAgents_anotherKeyIsNoNeighbour(t *testing.T) {
	l := upLab(t, "k", "fat-tree:k=4", "e0.0", "a0.2")
	l.start(withKeys(1))
	l.adjacent()
	agg := l.agents[l.id("a0.2")]
	if err := agg.SetKeys(withKeys(2).Keys); err != nil {
		t.Fatal(err)
	}
	edge, link := l.agents[l.id("e0.0")], l.link("e0.0-a0.2")
	l.within("the link is down", func() bool { return !edge.Topology().Live(link) && edge.Status().Rejected["mac"] > 0 })
	// Both accept both, then one may go over.
	both := topoupdate.Keys{List: []topoupdate.Key{
		{ID: 1, Secret: bytes.Repeat([]byte{1}, 32)},
		{ID: 2, Secret: bytes.Repeat([]byte{2}, 32), From: time.Hour},
	}}
	if err := errors.Join(agg.SetKeys(both), edge.SetKeys(both)); err != nil {
		t.Fatal(err)
	}
	l.within("the link is back", func() bool { return edge.Topology().Live(link) && agg.Topology().Live(link) })
}

// A flood of garbage, and of a message that is known, by one port: memory stays,
// no goroutine is added, and a failure that is heard of by another port gets
// through while it lasts.
func TestAgents_storm(t *testing.T) {
	count := slowtest.Choose(100_000, 1_000_000)
	l := upLab(t, "s", "fat-tree:k=4", append([]string{"c2.1"}, pod...)...)
	l.start(fast)
	l.adjacent()
	host := l.listen("h0.0.2")
	edge, link := l.agents[l.id("e0.0")], l.link("a0.3-c2.1")
	known := l.capture("e0.0", "p2", 1)[0]
	f := l.forger("a0.2", "p0", 255)
	goroutines, memory := runtime.NumGoroutine(), heap()
	var sent atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		garbage := make([]byte, 600)
		for i := range count {
			garbage[i%600]++
			f.send([][]byte{garbage, known, known[:30]}[i%3])
			sent.Add(1)
		}
	}()
	l.within("the storm", func() bool { return sent.Load() > int64(count/10) })
	at, err := l.Fail("a0.3-c2.1", lab.FailLoud)
	if err != nil {
		t.Fatal(err)
	}
	l.within("all know", func() bool { return !host.Topology().Live(link) && !edge.Topology().Live(link) })
	during := sent.Load() < int64(count)
	when, _ := l.events.first(l.id("h0.0.2"), link, false, at)
	s := edge.Status()
	t.Logf("in the storm a failure came through after %v; %d messages received, %d dropped by the kernel", when.Sub(at), s.Neighbours[2].Got, s.Neighbours[2].Drops)
	<-ended
	if !during {
		t.Log("the storm was over before; this run shows less")
	}
	// The storm's own has closed ended, and may not be quite gone yet.
	l.within("no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := heap(); now > memory+2<<20 {
		t.Errorf("%d bytes of heap, %d before", now, memory)
	}
	if s.Rejected["version"] == 0 || s.Rejected["replay"] == 0 || s.Rejected["truncated"] == 0 {
		t.Errorf("rejected: %v", s.Rejected)
	}
	// And the port that was flooded is well again.
	l.within("all is well", func() bool { return edge.Topology().Live(l.link("e0.0-a0.2")) })
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
