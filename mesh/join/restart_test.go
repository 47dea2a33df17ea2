package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weft/mesh"
)

// crashes is a directory that does not hear that its host ends.
type crashes struct{ Directory }

func (crashes) Close() error { return nil }

// dies is a directory whose host dies as soon as it is registered.
type dies struct {
	crashes
	registered bool
}

func (d *dies) Put(ctx context.Context, m mesh.Member) (int64, error) {
	if d.registered {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	d.registered = true
	return d.crashes.Put(ctx, m)
}

// kept are the keys that a host has in its file.
type kept struct {
	mu    sync.Mutex
	keys  []mesh.PrivateKey
	fail  error
	calls int
}

func (k *kept) keep(keys []mesh.PrivateKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.calls++; k.fail != nil {
		return k.fail
	}
	k.keys = keys
	return nil
}

func (k *kept) now() []mesh.PrivateKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys
}

// A host that crashes while it renews its key, after any step, has its name at once when it
// begins again with the keys that were kept, and finishes. At no time do two hosts send what
// the other one does not accept.
func TestSession_restartsWhileItRenews(t *testing.T) {
	for _, after := range []int{1, 2, 3} { // calls of KeepKeys
		t.Run(fmt.Sprint("after step ", after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, k := newMemory(), &kept{}
				begin := func() *host {
					return newHost(t, d, 1, func(c *Config) {
						c.Directory, c.Keys, c.KeepKeys, c.Renew = crashes{c.Directory}, k.now(), k.keep, time.Minute
					})
				}
				b := newHost(t, d, 2, nil)
				k.keys = []mesh.PrivateKey{mesh.NewPrivateKey(15)}
				first := k.keys[0].Public()
				a := begin()
				agree := func() {
					t.Helper()
					mine, theirs := a.now(), b.now()
					if len(mine) == 0 || len(theirs) == 0 {
						return
					}
					if p, q := mine[0], theirs[0]; *p.Key != *q.Key && (!slices.Contains(p.Accept, *q.Key) || !slices.Contains(q.Accept, *p.Key)) {
						t.Fatal("one of both does not accept what the other one sends")
					}
				}
				for calls := 0; calls < after; {
					time.Sleep(10 * time.Millisecond)
					agree()
					k.mu.Lock()
					calls = k.calls
					k.mu.Unlock()
				}
				a.Close() // the directory and b know what they knew
				a = begin()
				for range 1000 {
					time.Sleep(10 * time.Millisecond)
					agree()
				}
				if s := a.Status(); !s.Registered || s.Why != "" || len(s.Problems) > 0 {
					t.Errorf("%+v", s)
				}
				if s := b.Status(); s.Refused > 0 || s.Peers != 1 {
					t.Errorf("%+v", s)
				}
				if keys := k.now(); len(keys) != 1 || keys[0].Public() == first || keys[0].Generation != 0 {
					t.Errorf("%d keys are kept, the first of generation %d: the renewal has not ended", len(keys), keys[0].Generation)
				}
				a.Close()
				b.Close()
			})
		})
	}
}

// A key that cannot be kept is not announced.
func TestSession_keepsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, k := newMemory(), &kept{fail: errors.New("disk full")}
		a := newHost(t, d, 1, func(c *Config) { c.KeepKeys, c.Renew = k.keep, time.Minute })
		time.Sleep(10 * time.Minute)
		d.mu.Lock()
		n := len(d.members["h1"].Keys)
		d.mu.Unlock()
		if s := a.Status(); n != 1 || s.Renewed != 0 || s.Why != "the key is not renewed: disk full" || !s.Registered {
			t.Errorf("%d keys, %+v", n, s)
		}
		k.mu.Lock()
		k.fail = nil
		k.mu.Unlock()
		time.Sleep(30 * time.Second)
		if s := a.Status(); s.Renewed != 1 || s.Why != "" {
			t.Errorf("%+v", s)
		}
		a.Close()
	})
}

func TestOwnKeys_refuses(t *testing.T) {
	for _, g := range [][]uint8{{1, 1}, {1, 3}, {1, 2, 3}} {
		var keys []mesh.PrivateKey
		for _, g := range g {
			keys = append(keys, mesh.NewPrivateKey(g))
		}
		if _, err := ownKeys(keys); err == nil {
			t.Errorf("generations %v are taken", g)
		}
	}
}

// Peers that a tunnel has been given stay as they were given.
func TestSession_givesPeersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		var mu sync.Mutex
		var given [][]mesh.Peer
		a := newHost(t, d, 1, func(c *Config) {
			c.Linger = time.Minute
			c.SetPeers = func(peers []mesh.Peer) error {
				mu.Lock()
				defer mu.Unlock()
				given = append(given, peers)
				return nil
			}
		})
		newHost(t, d, 2, nil).awaitAndClose()
		time.Sleep(30 * time.Second) // it is not heard
		a.Close()
		mu.Lock()
		defer mu.Unlock()
		if n := len(given); n < 2 || len(given[n-1]) != 0 {
			t.Errorf("the peer is not gone: %v", given)
		}
		for _, peers := range given {
			for _, p := range peers {
				if p.Name != "h2" || !p.Endpoint.IsValid() {
					t.Errorf("it has become %+v", p)
				}
			}
		}
	})
}

// Hosts that come and die at once, without the directory hearing of it for some time, do not
// keep others from replacing their keys: who registers has seen what was there.
func TestSession_renewsAmongTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		a := newHost(t, d, 1, func(c *Config) { c.Renew = 10 * time.Second })
		b := newHost(t, d, 2, nil)
		for i := range 100 {
			name := fmt.Sprint("h", 10+i)
			h := newHost(t, d, 10+i, func(c *Config) { c.Directory = &dies{crashes: crashes{c.Directory}} })
			<-h.Ready()
			h.Close()
			go func() {
				time.Sleep(2 * time.Second) // its lease
				d.end(name)
			}()
			time.Sleep(500 * time.Millisecond)
		}
		if s := a.Status(); s.Renewed < 2 {
			t.Errorf("in 50 s, with keys to be replaced each 10 s: %+v", s)
		}
		time.Sleep(5 * time.Second)
		a.Close()
		b.Close()
	})
}
