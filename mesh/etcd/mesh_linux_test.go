package etcd

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
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/encap"
	"weft/hedera/store/storetest"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/link"
	"weft/mesh"
	"weft/mesh/join"
	"weft/stack"
)

const prefix = "/weft/mesh/test"

func open(t testing.TB, c *clientv3.Client, ttl time.Duration) *Directory {
	t.Helper()
	d, err := Open(Config{Client: c, Prefix: prefix, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func member(name string, n int, keys ...mesh.PrivateKey) mesh.Member {
	m := mesh.Member{Name: name, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Prefixes: []netip.Prefix{prefixOf(n)}}
	for _, k := range keys {
		m.Keys = append(m.Keys, k.Public())
	}
	return m
}

func prefixOf(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(n >> 8), byte(n)}), 32)
}

func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(kerneltest.Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", kerneltest.Patience, what)
		}
	}
}

// A name is one host's, until its registration ends. A host that begins anew has it again
// at once if it has its key. What others have written is left out.
func TestDirectory_names(t *testing.T) {
	c := storetest.New(t, 1)
	client := c.Client()
	ctx := t.Context()
	key, other := mesh.NewPrivateKey(1), mesh.NewPrivateKey(2)
	first, second, third := open(t, client, time.Minute), open(t, client, time.Minute), open(t, client, time.Minute)
	r1, err := first.Put(ctx, member("a", 1, key))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Put(ctx, member("a", 1, other)); !errors.Is(err, join.ErrTaken) {
		t.Errorf("another host by that name: %v", err)
	}
	r2, err := third.Put(ctx, member("a", 1, key))
	if err != nil || r2 <= r1 {
		t.Errorf("the same key again: %d after %d, %v", r2, r1, err)
	}
	if err := first.Close(); err != nil { // the registration is the third one's now
		t.Error(err)
	}
	if _, err := second.Put(ctx, member("a", 1, other)); !errors.Is(err, join.ErrTaken) {
		t.Errorf("after the former one has gone: %v", err)
	}
	if _, err := third.Put(ctx, member("b", 1, key)); err == nil {
		t.Error("one host has two names")
	}
	for key, value := range map[string]string{
		"/members/zz": "{}", "/members/" + fmt.Sprintf("%x", "c"): `{"name":"d","endpoints":["192.0.2.1:1"],"prefixes":["10.0.0.1/32"]}`, "/other": "1",
	} {
		if _, err := client.Put(ctx, prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
	all, keys, _, err := third.all(ctx)
	if err != nil || keys != 3 || len(all) != 1 || all[0].Name != "a" || all[0].Revision != r2 || all[0].Since != r1 {
		t.Errorf("%+v, %v", all, err)
	}
	watching, stop := context.WithCancel(ctx)
	news := make(chan join.Update, 100)
	ended := make(chan error, 1)
	go func() { ended <- second.Watch(watching, func(u join.Update) { news <- u }) }()
	if u := <-news; !u.All || len(u.Put) != 1 {
		t.Errorf("%+v", u)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	if u := <-news; !slices.Equal(u.Gone, []string{"a"}) {
		t.Errorf("%+v", u)
	}
	if _, err := second.Put(ctx, member("a", 1, other)); err != nil {
		t.Errorf("the name is free: %v", err)
	}
	if u := <-news; len(u.Put) != 1 || u.Put[0].Since <= r2 {
		t.Errorf("%+v", u)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ends with %v", err)
	}
}

func TestOpen_refuses(t *testing.T) {
	for _, c := range []Config{{}, {Client: &clientv3.Client{}}, {Client: &clientv3.Client{}, Prefix: "/a/"}, {Client: &clientv3.Client{}, Prefix: "/a", TTL: time.Millisecond}} {
		if _, err := Open(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// rootless is a Host of an ordinary user that is in the mesh.
type rootless struct {
	*stack.Host
	*join.Session
	address netip.Addr
}

func newRootless(t testing.TB, client *clientv3.Client, i int, cipher encap.UDPCipher, renew time.Duration) *rootless {
	t.Helper()
	return newRootlessAt(t, client, i, cipher, renew, nil)
}

// newRootlessAt makes one with a clock of its own.
func newRootlessAt(t testing.TB, client *clientv3.Client, i int, cipher encap.UDPCipher, renew time.Duration, clock func() time.Time) *rootless {
	t.Helper()
	r := &rootless{address: prefixOf(i).Addr()}
	u, err := link.OpenUDP(link.UDPConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Paths: 2})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("h", i)
	if r.Host, err = stack.New(stack.Config{Address: r.address, Policy: "presto", Simulation: stack.Simulation{Seed: uint64(i + 1)},
		Tunnel: &stack.Tunnel{Underlay: u, Name: name, Room: encap.UDPHiddenOverhead, Time: clock}}); err != nil {
		t.Fatal(err)
	}
	if r.Session, err = join.New(join.Config{Directory: open(t, client, 2*time.Second), Name: name, Endpoints: []netip.AddrPort{u.LocalAddr()}, Prefixes: []netip.Prefix{prefixOf(i)},
		Cipher: cipher, Renew: renew, Linger: time.Minute, SetPeers: r.Host.SetPeers, Heard: r.Host.PeerDatagrams, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rootless) leave() error { return errors.Join(r.Session.Close(), r.Host.Close()) }

// serve answers each connection with what it sends, for ever.
func (r *rootless) serve(t testing.TB) {
	l, err := r.Host.Listen("tcp", ":7")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); io.Copy(c, c) }()
		}
	}()
}

// talk sends to a host that serves, and compares what comes back.
func talk(c net.Conn, r *rand.Rand, n int) error {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	want := sha256.Sum256(b)
	sent := make(chan error, 1)
	go func() { _, err := c.Write(b); sent <- err }()
	got := make([]byte, n)
	c.SetReadDeadline(time.Now().Add(2 * kerneltest.Patience))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if sha256.Sum256(got) != want {
		return errors.New("what came back is not what was sent")
	}
	return <-sent
}

// Rootless hosts find each other on three members of etcd, of which the leader is killed
// again and again, while hosts come and go and keys are renewed. Connections between hosts
// that stay are never lost, and no datagram is refused but for what a peer sent that has
// gone.
func TestMesh_churn(t *testing.T) {
	slowtest.System(t)
	stay, kills := slowtest.Choose(8, 40), slowtest.Choose(3, 50)
	c := storetest.New(t, 3)
	client := c.Client()
	var hosts []*rootless
	for i := range stay {
		h := newRootless(t, client, i, encap.UDPAESGCM, 3*time.Second)
		h.serve(t)
		hosts = append(hosts, h)
	}
	for _, h := range hosts {
		within(t, "all know all", func() bool { return h.Status().Peers == stay-1 })
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for i := range stay { // each talks to the next one, by one connection
		conn, err := hosts[i].DialContext(t.Context(), "tcp", netip.AddrPortFrom(hosts[(i+1)%stay].address, 7).String())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer conn.Close()
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for n := 0; ; n++ {
				if err := talk(conn, r, 20_000); err != nil {
					t.Errorf("h%d, exchange %d: %v", i, n, err)
					return
				}
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	all.Go(func() { // others come and go
		for i := stay; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			own := client
			if i%2 != 0 {
				own = c.Client()
			}
			h := newRootless(t, own, i, encap.UDPAESGCM, 0)
			select {
			case <-h.Ready():
			case <-done:
			}
			if err := h.Host.Close(); err != nil {
				t.Error(err)
			}
			if own != client {
				own.Close() // it ends with its lease
			}
			if err := h.Session.Close(); err != nil {
				t.Log(err) // etcd has no leader just then
			}
		}
	})
	for n := range kills {
		leader := -1
		within(t, "etcd has a leader", func() bool {
			for i, e := range c.Endpoints() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				s, err := client.Status(ctx, e)
				cancel()
				if err == nil && s.Leader == s.Header.MemberId {
					leader = i
					return true
				}
			}
			return false
		})
		c.Kill(leader)
		time.Sleep(time.Duration(n%3) * 500 * time.Millisecond)
		c.Start(leader)
	}
	within(t, "keys have been replaced", func() bool {
		return !slices.ContainsFunc(hosts, func(h *rootless) bool { return h.Status().Renewed == 0 })
	})
	close(done)
	all.Wait()
	for i, h := range hosts {
		s, st := h.Host.Stats().Tunnel, h.Status()
		if s.Forged+s.Replayed+s.Malformed > 0 || len(st.Problems) > 0 {
			t.Errorf("h%d: %+v, %+v", i, s, st)
		}
	}
	t.Logf("h0: %+v, %+v", hosts[0].Status(), hosts[0].Host.Stats().Tunnel)
	for _, h := range hosts {
		if err := h.leave(); err != nil {
			t.Error(err)
		}
	}
}

// A host that etcd has lost is gone for the others when it is not heard, and stays while it
// is.
func TestMesh_lostByEtcd(t *testing.T) {
	slowtest.System(t)
	c := storetest.New(t, 1)
	client, lost := c.Client(), c.Client()
	a, b, silent := newRootless(t, client, 1, encap.UDPChaCha20Poly1305, 0), newRootless(t, lost, 2, encap.UDPChaCha20Poly1305, 0), newRootless(t, lost, 3, encap.UDPChaCha20Poly1305, 0)
	b.serve(t)
	within(t, "all know all", func() bool { return a.Status().Peers == 2 && b.Status().Peers == 2 })
	conn, err := a.DialContext(t.Context(), "tcp", netip.AddrPortFrom(b.address, 7).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(1, 1))
	lost.Close()
	within(t, "only who is heard is left", func() bool {
		if err := talk(conn, r, 1000); err != nil {
			t.Fatal(err)
		}
		s := a.Status()
		return s.Peers == 1 && s.Lingering == 1
	})
	for range 20 {
		if err := talk(conn, r, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Host.Close(); err != nil {
		t.Error(err)
	}
	within(t, "who is not heard is gone", func() bool { return a.Status().Peers == 0 })
	b.Session.Close()
	silent.leave()
	if err := a.leave(); err != nil {
		t.Error(err)
	}
}
