package join_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/link"
	"weft/mesh"
	"weft/mesh/join"
	"weft/stack"
)

// stormy is a directory that somebody floods. It decodes what comes, as etcd's does.
type stormy struct {
	mu       sync.Mutex
	revision int64
	members  map[string]mesh.Member
	watches  map[*member]*watch
}

// watch is that of one host.
type watch struct {
	told func(join.Update)
	news chan join.Update
}

// member is one host's directory.
type member struct {
	*stormy
	name string
}

func (d *member) Put(_ context.Context, m mesh.Member) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	m.Revision, m.Since = d.revision, d.revision
	if former, ok := d.members[m.Name]; ok {
		m.Since = former.Since
	}
	d.members[m.Name] = m
	for _, w := range d.watches {
		w.news <- join.Update{Put: []mesh.Member{m}}
	}
	return m.Revision, nil
}

func (d *member) Watch(ctx context.Context, told func(join.Update)) error {
	d.mu.Lock()
	u := join.Update{All: true}
	for _, m := range d.members {
		u.Put = append(u.Put, m)
	}
	w := &watch{told, make(chan join.Update, 1000)}
	d.watches[d] = w
	d.mu.Unlock()
	for told(u); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case u := <-w.news:
			told(u)
		}
	}
}

func (d *member) Close() error { return nil }

// flood tells one host of encoded registrations. It returns when the host has taken them.
func (d *stormy) flood(told func(join.Update), values [][]byte) {
	var u join.Update
	for _, v := range values {
		if m, err := mesh.Decode(v); err == nil {
			d.mu.Lock()
			d.revision++
			m.Revision, m.Since = d.revision, 1<<20
			if former, ok := d.members[m.Name]; ok { // it is written over
				m.Since = former.Since
			}
			d.mu.Unlock()
			u.Put = append(u.Put, m)
		}
	}
	told(u)
}

// pool are registrations as a flooder makes them: names of nobody's with another key each time, prefixes
// of others, and names of others, signed and not.
func pool(tb testing.TB, n int) (values [][]byte) {
	tb.Helper()
	other := mesh.NewIdentity()
	for i := range n {
		m := mesh.Member{Name: fmt.Sprint("flood ", i%5000), Endpoints: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.66:9")},
			Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i % 5000 >> 8), byte(i % 5000)}), 32)},
			Keys:     []mesh.PublicKey{mesh.NewPrivateKey(uint8(i)).Public()}}
		switch i % 8 {
		case 0:
			m.Name = fmt.Sprint("h", 1+i/8%2)
		case 1:
			m.Prefixes[0] = netip.PrefixFrom(address(1+i/8%2), 32)
		}
		if i%4 == 0 {
			m.Serial = int64(i + 1)
			if err := m.Sign(other); err != nil {
				tb.Fatal(err)
			}
		}
		b, err := m.Encode()
		if err != nil {
			tb.Fatal(err)
		}
		values = append(values, b)
	}
	return values
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, 0, byte(i)}) }

type host struct {
	*stack.Host
	*join.Session
}

func begin(tb testing.TB, d *stormy, i int) *host {
	tb.Helper()
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 2})
	if err != nil {
		tb.Fatal(err)
	}
	name := fmt.Sprint("h", i)
	h := &host{}
	if h.Host, err = stack.New(stack.Config{Address: address(i), Policy: "presto", Simulation: stack.Simulation{Seed: uint64(i)},
		Tunnel: &stack.Tunnel{Underlay: u, Name: name, Room: encap.UDPHiddenOverhead}}); err != nil {
		tb.Fatal(err)
	}
	if h.Session, err = join.New(join.Config{Directory: &member{d, name}, Name: name, Endpoints: []netip.AddrPort{u.LocalAddr()}, Prefixes: []netip.Prefix{netip.PrefixFrom(address(i), 32)},
		Cipher: encap.UDPAESGCM, Linger: time.Minute, Identity: mesh.NewIdentity(), SetPeers: h.Host.SetPeers, Heard: h.Host.PeerDatagrams, Log: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(h.Session.Close(), h.Host.Close()); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// pair are two hosts that have a connection, and a directory.
func pair(tb testing.TB) (d *stormy, a *host, told func(join.Update), c net.Conn) {
	tb.Helper()
	d = &stormy{members: map[string]mesh.Member{}, watches: map[*member]*watch{}}
	a, b := begin(tb, d, 1), begin(tb, d, 2)
	for end := time.Now().Add(kerneltest.Patience); a.Status().Peers != 1 || b.Status().Peers != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("%+v, %+v", a.Status(), b.Status())
		}
	}
	l, err := b.Listen("tcp", ":7")
	if err != nil {
		tb.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	if c, err = a.DialContext(tb.Context(), "tcp", netip.AddrPortFrom(address(2), 7).String()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	d.mu.Lock()
	defer d.mu.Unlock()
	for m, w := range d.watches {
		if m.name == "h1" {
			told = w.told
		}
	}
	return d, a, told, c
}

func exchange(c net.Conn, r *rand.Rand) error {
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	want := sha256.Sum256(b)
	sent := make(chan error, 1)
	go func() { _, err := c.Write(b); sent <- err }()
	c.SetReadDeadline(time.Now().Add(2 * kerneltest.Patience))
	got := make([]byte, len(b))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if sha256.Sum256(got) != want {
		return errors.New("what came back is not what was sent")
	}
	return <-sent
}

// Somebody registers as fast as a host takes it: names of nobody's, and those and the prefixes of others. The
// host's connection goes on, its peer is where it was, and what does not count is counted and named.
func TestSession_storm(t *testing.T) {
	d, a, told, c := pair(t)
	values := pool(t, 20_000)
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for i := 0; i < len(values); i += 100 {
			d.flood(told, values[i:i+100])
		}
	}()
	r := rand.New(rand.NewPCG(1, 1))
	for flooding := true; flooding; {
		if err := exchange(c, r); err != nil {
			t.Fatalf("%v: %+v, %+v", err, a.Status(), a.Stats().Tunnel)
		}
		select {
		case <-flooded:
			flooding = false
		default:
		}
	}
	const peers = 5000*6/8 + 1 // without those by others' names, and with others' prefixes alone
	for end := time.Now().Add(kerneltest.Patience); a.Status().Peers != peers; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d peers", a.Status().Peers)
		}
	}
	if err := exchange(c, r); err != nil {
		t.Error(err)
	}
	s := a.Status()
	if s.Refused < 10_000 || len(s.Problems) == 0 || len(s.Problems) > mesh.MaxProblems || s.Updates < 20_000 {
		t.Errorf("%d refused, %d named, %d updates", s.Refused, len(s.Problems), s.Updates)
	}
}

// 10,000 registrations a second are offered to a host while a connection of its is at work: how much of a
// processor they take, decoding and checking signatures included, how much memory stays, and what of the
// connection.
func BenchmarkSession_storm(b *testing.B) {
	for _, rate := range []int{0, 10_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			d, a, told, c := pair(b)
			values := pool(b, 40_000)
			done := make(chan struct{})
			var lost error
			exchanges := 0
			longest := time.Duration(0)
			var all sync.WaitGroup
			all.Go(func() {
				r := rand.New(rand.NewPCG(1, 1))
				for lost == nil {
					select {
					case <-done:
						return
					case <-time.After(5 * time.Millisecond):
					}
					began := time.Now()
					lost = exchange(c, r)
					longest = max(longest, time.Since(began))
					exchanges++
				}
			})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			used, began := cpu(b), time.Now()
			offered := 0
			const each = 10 * time.Millisecond
			for b.Loop() { // one of these is 100 ms
				for range 10 {
					next := began.Add(time.Duration(offered/max(1, rate/100)) * each)
					for i := 0; i < rate/100; i += 100 {
						at := offered % len(values)
						d.flood(told, values[at:at+100])
						offered += 100
					}
					if rate == 0 {
						next = time.Now().Add(each)
					}
					time.Sleep(time.Until(next))
				}
			}
			took := time.Since(began).Seconds()
			b.ReportMetric((cpu(b)-used)/took, "cpu-s/s")
			close(done)
			all.Wait()
			runtime.GC()
			runtime.ReadMemStats(&after)
			s := a.Status()
			b.ReportMetric(float64(offered)/took, "registrations/s")
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/1e6, "MB-kept")
			b.ReportMetric(float64(exchanges)/took, "exchanges/s")
			b.ReportMetric(longest.Seconds()*1000, "ms-longest")
			b.ReportMetric(float64(s.Refused), "refused")
			b.ReportMetric(float64(s.Peers), "peers")
			if lost != nil {
				b.Error(lost)
			}
		})
	}
}

// cpu is the processor time of this process, in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
