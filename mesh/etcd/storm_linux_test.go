package etcd

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/encap"
	"weft/link"
	"weft/mesh"
	"weft/mesh/join"
	"weft/stack"
)

// stormy is a directory in memory. One of its hosts has somebody's registrations besides, by a watch of etcd's
// as it comes from the client.
type stormy struct {
	mu       sync.Mutex
	revision int64
	members  map[string]mesh.Member
	watches  map[*stormyOf]chan join.Update
	etcd     *Directory
	fake     *fakeEtcd
}

// stormyOf is one host's directory.
type stormyOf struct {
	*stormy
	floods bool
}

func (d *stormyOf) Put(_ context.Context, m mesh.Member) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision++
	m.Revision, m.Since = d.revision, d.revision
	if former, ok := d.members[m.Name]; ok {
		m.Since = former.Since
	}
	d.members[m.Name] = m
	for _, news := range d.watches {
		news <- join.Update{Put: []mesh.Member{m}}
	}
	return m.Revision, nil
}

func (d *stormyOf) Watch(ctx context.Context, told func(join.Update)) error {
	d.mu.Lock()
	u := join.Update{All: true}
	for _, m := range d.members {
		u.Put = append(u.Put, m)
	}
	news := make(chan join.Update, 1000)
	d.watches[d] = news
	d.mu.Unlock()
	told(u)
	if d.floods {
		ended := make(chan struct{})
		defer func() { <-ended }()
		go func() {
			defer close(ended)
			d.etcd.Watch(ctx, func(u join.Update) {
				if !u.All {
					told(u)
				}
			})
		}()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case u := <-news:
			told(u)
		}
	}
}

func (d *stormyOf) Close() error { return nil }

// written is a registration as etcd has it.
type written struct {
	name  string
	value []byte
}

// flood has etcd tell of registrations.
func (d *stormy) flood(list []written) {
	r := clientv3.WatchResponse{Header: d.fake.header()}
	d.mu.Lock()
	for _, w := range list {
		d.revision++
		kv := &mvccpb.KeyValue{Key: []byte(prefix + "/members/" + hex.EncodeToString([]byte(w.name))), Value: w.value, ModRevision: d.revision, CreateRevision: 1 << 20}
		if former, ok := d.members[w.name]; ok { // it is written over
			kv.CreateRevision = former.Since
		}
		r.Events = append(r.Events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
	}
	d.mu.Unlock()
	d.fake.watch <- r
}

const (
	floodNames = 5000
	floodPeers = floodNames * 6 / 8 // without those by others' names, and with others' prefixes alone
)

// floods are registrations as a flooder makes them: names of nobody's with another key each time, prefixes
// of others, and names of others, signed and not.
func floods(tb testing.TB, n int) (list []written) {
	tb.Helper()
	other := mesh.NewIdentity()
	for i := range n {
		m := member(fmt.Sprint("flood ", i%floodNames), 1000+i%floodNames, mesh.NewPrivateKey(uint8(i)))
		switch i % 8 {
		case 0:
			m.Name = fmt.Sprint("h", 1+i/8%2)
		case 1:
			m.Prefixes[0] = prefixOf(1 + i/8%2)
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
		list = append(list, written{m.Name, b})
	}
	return list
}

func newStormy(tb testing.TB, d *stormy, i int) *rootless {
	tb.Helper()
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 2})
	if err != nil {
		tb.Fatal(err)
	}
	r := &rootless{address: prefixOf(i).Addr()}
	name := fmt.Sprint("h", i)
	if r.Host, err = stack.New(stack.Config{Address: r.address, Policy: "presto", Simulation: stack.Simulation{Seed: uint64(i)},
		Tunnel: &stack.Tunnel{Underlay: u, Name: name, Room: encap.UDPHiddenOverhead}}); err != nil {
		tb.Fatal(err)
	}
	if r.Session, err = join.New(join.Config{Directory: &stormyOf{d, i == 1}, Name: name, Endpoints: []netip.AddrPort{u.LocalAddr()}, Prefixes: []netip.Prefix{prefixOf(i)},
		Cipher: encap.UDPAESGCM, Linger: time.Minute, Identity: mesh.NewIdentity(), SetPeers: r.Host.SetPeers, Heard: r.Host.PeerDatagrams, Log: slog.New(slog.DiscardHandler)}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.leave(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// stormyPair are two hosts with a connection, of which the first is flooded.
func stormyPair(tb testing.TB) (d *stormy, a *rootless, c net.Conn) {
	tb.Helper()
	fake := &fakeEtcd{revision: 1, creates: true}
	client := clientv3.NewCtxClient(context.Background())
	client.KV, client.Lease, client.Watcher = fake, fake, fake
	d = &stormy{members: map[string]mesh.Member{}, watches: map[*stormyOf]chan join.Update{}, etcd: open(tb, client, time.Minute), fake: fake}
	a, b := newStormy(tb, d, 1), newStormy(tb, d, 2)
	b.serve(tb)
	within(tb, "both know each other", func() bool {
		fake.mu.Lock()
		defer fake.mu.Unlock()
		return a.Status().Peers == 1 && b.Status().Peers == 1 && fake.watch != nil
	})
	c, err := a.DialContext(tb.Context(), "tcp", netip.AddrPortFrom(b.address, 7).String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return d, a, c
}

// Somebody registers far faster than a host takes it: names of nobody's, and those and the prefixes of others.
// The host's connection goes on, its peer is where it was, and what does not count is counted and named.
func TestMesh_storm(t *testing.T) {
	d, a, c := stormyPair(t)
	list := floods(t, 20_000)
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for i := 0; i < len(list); i += 100 {
			d.flood(list[i : i+100])
		}
	}()
	r := rand.New(rand.NewPCG(1, 1))
	for flooding := true; flooding; {
		if err := talk(c, r, 1000); err != nil {
			t.Fatalf("%v: %+v", err, a.Stats().Tunnel)
		}
		select {
		case <-flooded:
			flooding = false
		default:
		}
	}
	within(t, "the last is known", func() bool { return a.Status().Peers == floodPeers+1 })
	if err := talk(c, r, 1000); err != nil {
		t.Error(err)
	}
	if s := a.Status(); s.Refused == 0 || len(s.Problems) == 0 || len(s.Problems) > mesh.MaxProblems {
		t.Errorf("%d refused, %d named", s.Refused, len(s.Problems))
	}
}

// 10,000 registrations a second are offered to a host while a connection of its is at work: how much of a
// processor they take, decoding and signatures included, how much memory stays, and what of the connection.
func BenchmarkMesh_storm(b *testing.B) {
	for _, rate := range []int{0, 10_000, 30_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			d, a, c := stormyPair(b)
			list := floods(b, 40_000)
			done := make(chan struct{})
			var lost error
			exchanges, longest := 0, time.Duration(0)
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
					lost = talk(c, r, 5000)
					longest = max(longest, time.Since(began))
					exchanges++
				}
			})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			used, began := processorTime(b), time.Now()
			offered, most := 0, uint64(0)
			for n := 1; b.Loop(); n++ { // one of these is 100 ms
				for offered < n*rate/10 {
					at := offered % len(list)
					d.flood(list[at : at+100])
					offered += 100
				}
				runtime.ReadMemStats(&after)
				most = max(most, after.HeapAlloc)
				time.Sleep(time.Until(began.Add(time.Duration(n) * 100 * time.Millisecond)))
			}
			took := time.Since(began).Seconds()
			b.ReportMetric((processorTime(b)-used)/took, "cpu-s/s")
			close(done)
			all.Wait()
			runtime.GC()
			runtime.ReadMemStats(&after)
			s := a.Status()
			b.ReportMetric(float64(offered)/took, "offered/s")
			b.ReportMetric(float64(s.Updates)/took, "taken/s")
			b.ReportMetric(float64(most)/1e6, "MB-most")
			b.ReportMetric(float64(after.HeapAlloc)/1e6, "MB-after")
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

// processorTime is that of this process, in seconds.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
