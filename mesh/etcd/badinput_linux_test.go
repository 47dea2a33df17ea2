package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"weft/encap"
	"weft/hedera/store/storetest"
	"weft/internal/etcdclient/etcdtest"
	"weft/internal/slowtest"
	"weft/mesh"
	"weft/mesh/join"
)

func clientOf(t *testing.T, c *etcdtest.Cluster) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Clients, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Hosts that are registered go on when etcd is full, and one that comes then says why it is not.
func TestMesh_full(t *testing.T) {
	slowtest.System(t)
	c := etcdtest.New(t, 1, "http", []string{"--quota-backend-bytes", "200000"}, nil)
	client := clientOf(t, c)
	a, b := newRootless(t, client, 1, encap.UDPAESGCM, 0), newRootless(t, client, 2, encap.UDPAESGCM, 0)
	b.serve(t)
	within(t, "all know all", func() bool {
		return a.Status().Peers == 1 && b.Status().Peers == 1 && a.Status().Registered && b.Status().Registered
	})
	conn, err := a.DialContext(t.Context(), "tcp", netip.AddrPortFrom(b.address, 7).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := 0; ; i++ {
		if _, err := client.Put(t.Context(), fmt.Sprint("/full/", i), strings.Repeat("x", 20_000)); err != nil {
			break
		}
		if i > 1000 {
			t.Fatal("etcd is never full")
		}
	}
	late := newRootless(t, client, 3, encap.UDPAESGCM, 0)
	within(t, "the status says why", func() bool { s := late.Status(); return !s.Registered && strings.Contains(s.Why, "etcd is full") })
	if s := late.Status(); s.Peers != 2 {
		t.Errorf("%+v", s)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); { // longer than the leases, which are kept
		if err := talk(conn, r, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if s := a.Status(); !s.Registered || s.Peers != 1 || s.Lingering > 0 {
		t.Errorf("%+v", s)
	}
	c.Ctl("del", "--prefix", "/full/")
	c.Ctl("compaction", fmt.Sprint(revision(t, client)))
	c.Ctl("defrag")
	c.Ctl("alarm", "disarm")
	within(t, "the late one is registered", func() bool { return late.Status().Registered && a.Status().Peers == 2 })
	for _, h := range []*rootless{a, b, late} {
		if err := h.leave(); err != nil {
			t.Error(err)
		}
	}
}

func revision(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()
	r, err := client.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// etcd is restored from a backup in which one host is not there yet, and others have former keys:
// connections go on, all are registered again, and keys are replaced as before.
func TestMesh_restored(t *testing.T) {
	slowtest.System(t)
	c := etcdtest.New(t, 1, "http", nil, nil)
	client := clientOf(t, c)
	const renew = 3 * time.Second
	hosts := []*rootless{newRootless(t, client, 1, encap.UDPAESGCM, renew), newRootless(t, client, 2, encap.UDPAESGCM, renew)}
	know := func(n int) func() bool {
		return func() bool {
			for _, h := range hosts {
				if s := h.Status(); s.Peers-s.Lingering != n || !s.Registered || !s.Following {
					return false
				}
			}
			return true
		}
	}
	within(t, "two know each other", know(1))
	backup := filepath.Join(c.Dir, "backup")
	c.Ctl("snapshot", "save", backup)
	hosts = append(hosts, newRootless(t, client, 3, encap.UDPAESGCM, renew))
	for _, h := range hosts {
		h.serve(t)
	}
	within(t, "three know each other, and have other keys", func() bool {
		for _, h := range hosts[:2] {
			if h.Status().Renewed == 0 {
				return false
			}
		}
		return know(2)()
	})
	done := make(chan struct{})
	lost := make(chan error, 3)
	for i, h := range hosts {
		conn, err := h.DialContext(t.Context(), "tcp", netip.AddrPortFrom(hosts[(i+1)%3].address, 7).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for {
				if err := talk(conn, r, 5000); err != nil {
					lost <- fmt.Errorf("from %d: %w", i, err)
					return
				}
				select {
				case <-done:
					lost <- nil
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		}()
	}
	was := revision(t, client)
	c.Kill(0)
	if err := os.RemoveAll(c.Data(0)); err != nil {
		t.Fatal(err)
	}
	c.Ctl("snapshot", "restore", backup, "--name=m0", "--data-dir", c.Data(0), "--initial-cluster", c.Initial(), "--initial-advertise-peer-urls", c.Peer(0))
	c.Start(0)
	c.Await("etcd answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client.Get(ctx, "/")
		return err == nil
	})
	if now := revision(t, client); now >= was {
		t.Errorf("revision %d follows %d: nothing is tested", now, was)
	}
	within(t, "three know each other again", know(2))
	var before []uint64
	for _, h := range hosts {
		before = append(before, h.Status().Renewed)
	}
	within(t, "keys are replaced", func() bool {
		for i, h := range hosts {
			if h.Status().Renewed <= before[i] {
				return false
			}
		}
		return know(2)()
	})
	close(done)
	for range hosts {
		if err := <-lost; err != nil {
			t.Error(err)
		}
	}
	for _, h := range hosts {
		if s := h.Status(); len(s.Problems) > 0 {
			t.Errorf("%+v", s)
		}
		if err := h.leave(); err != nil {
			t.Error(err)
		}
	}
}

// Clocks that are an hour off, in both directions, do not matter: leases are etcd's, and numbers are
// compared with those of the same sender alone.
func TestMesh_clocks(t *testing.T) {
	slowtest.System(t)
	c := storetest.New(t, 1)
	var hosts []*rootless
	for i, off := range []time.Duration{0, time.Hour, -time.Hour} {
		h := newRootlessAt(t, c.Client(), i+1, encap.UDPAESGCM, 2*time.Second, func() time.Time { return time.Now().Add(off) })
		h.serve(t)
		hosts = append(hosts, h)
	}
	within(t, "all know all", func() bool {
		return !slices.ContainsFunc(hosts, func(h *rootless) bool { return h.Status().Peers != 2 })
	})
	r := rand.New(rand.NewPCG(1, 1))
	for i, h := range hosts {
		conn, err := h.DialContext(t.Context(), "tcp", netip.AddrPortFrom(hosts[(i+1)%3].address, 7).String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for before := h.Status().Renewed; h.Status().Renewed == before; {
			if err := talk(conn, r, 1000); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, h := range hosts {
		if s := h.Host.Stats().Tunnel; s.Forged+s.Replayed > 0 || h.Status().Peers != 2 {
			t.Errorf("%+v, %+v", s, h.Status())
		}
		if err := h.leave(); err != nil {
			t.Error(err)
		}
	}
}

// Somebody registers names as fast as etcd takes them. The hosts' connection goes on, and they know
// at the end what is there.
func TestMesh_flood(t *testing.T) {
	slowtest.System(t)
	c := storetest.New(t, 1)
	client, flooder := c.Client(), c.Client()
	a, b := newRootless(t, client, 1, encap.UDPAESGCM, 0), newRootless(t, client, 2, encap.UDPAESGCM, 0)
	b.serve(t)
	within(t, "all know all", func() bool { return a.Status().Peers == 1 && b.Status().Peers == 1 })
	conn, err := a.DialContext(t.Context(), "tcp", netip.AddrPortFrom(b.address, 7).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	flooded := make(chan error, 1)
	const names, registrations = 500, 30_000
	began := time.Now()
	go func() {
		for i := 0; i < registrations; i += 100 {
			var puts []clientv3.Op
			for j := i; j < i+100; j++ {
				m := member(fmt.Sprint("flood", j%names), 1000+j%names, mesh.NewPrivateKey(uint8(j/names)))
				value, err := m.Encode()
				if err != nil {
					flooded <- err
					return
				}
				puts = append(puts, clientv3.OpPut(prefix+"/members/"+fmt.Sprintf("%x", m.Name), string(value)))
			}
			if _, err := flooder.Txn(context.Background()).Then(puts...).Commit(); err != nil {
				flooded <- err
				return
			}
		}
		flooded <- nil
	}()
	r := rand.New(rand.NewPCG(1, 1))
	exchanges := 0
	for flooding := true; flooding; exchanges++ {
		if err := talk(conn, r, 1000); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-flooded:
			if err != nil {
				t.Fatal(err)
			}
			flooding = false
		default:
		}
	}
	t.Logf("%.0f registrations a second, %d exchanges meanwhile", registrations/time.Since(began).Seconds(), exchanges)
	within(t, "all is known", func() bool { return a.Status().Peers == names+1 && b.Status().Peers == names+1 })
	if s := a.Status(); len(s.Problems) == 0 || s.Refused == 0 { // keys that nobody has announced
		t.Errorf("%+v", s)
	}
	for _, h := range []*rootless{a, b} {
		if err := h.leave(); err != nil {
			t.Error(err)
		}
	}
}

// Who has written over a host's registration does not keep it, whatever he has written.
func TestDirectory_overwritten(t *testing.T) {
	c := storetest.New(t, 1)
	client := c.Client()
	key := mesh.NewPrivateKey(0)
	first := open(t, client, time.Minute)
	if _, err := first.Put(t.Context(), member("a", 1, key)); err != nil {
		t.Fatal(err)
	}
	evil := member("a", 7, mesh.NewPrivateKey(1))
	value, err := evil.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{string(value), "garbage"} {
		if _, err := client.Put(t.Context(), first.keyOf("a"), value); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Put(t.Context(), member("a", 1, key)); err != nil {
			t.Errorf("written over by %.20s: %v", value, err)
		}
	}
	// One that was free between is somebody else's, unless the identity says that it is the host's.
	identity := mesh.NewIdentity()
	for _, signs := range []bool{false, true} {
		if _, err := client.Delete(t.Context(), first.keyOf("a")); err != nil {
			t.Fatal(err)
		}
		other, mine := member("a", 1, mesh.NewPrivateKey(2)), member("a", 1, key)
		if signs {
			for _, m := range []*mesh.Member{&other, &mine} {
				if err := m.Sign(identity); err != nil {
					t.Fatal(err)
				}
			}
		}
		value, err := other.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), first.keyOf("a"), string(value)); err != nil {
			t.Fatal(err)
		}
		if _, err := first.Put(t.Context(), mine); signs != (err == nil) || !signs && !errors.Is(err, join.ErrTaken) {
			t.Errorf("signed %t: %v", signs, err)
		}
	}
}
