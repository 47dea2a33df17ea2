package join

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weft/mesh"
)

// cut is a directory that one host alone may lose.
type cut struct {
	*of
	mu   sync.Mutex
	away bool
	ends []context.CancelFunc // of the watches

	loses atomic.Bool // the answer to the Put that puts another key in use
}

var errAway = errors.New("away")

func (c *cut) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
	for _, end := range c.ends {
		end()
	}
	c.ends = nil
}

func (c *cut) Put(ctx context.Context, m mesh.Member) (int64, error) {
	c.mu.Lock()
	away := c.away
	c.mu.Unlock()
	if away {
		return 0, errAway
	}
	revision, err := c.of.Put(ctx, m)
	if inUse := len(m.Keys) == 2 && m.Keys[1].Generation < m.Keys[0].Generation; inUse && c.loses.CompareAndSwap(true, false) {
		return 0, context.DeadlineExceeded
	}
	return revision, err
}

func (c *cut) Watch(ctx context.Context, told func(Update)) error {
	c.mu.Lock()
	if c.away {
		c.mu.Unlock()
		return errAway
	}
	ctx, end := context.WithCancel(ctx)
	c.ends = append(c.ends, end)
	c.mu.Unlock()
	return c.of.Watch(ctx, told)
}

// accepts reports whether what a host sends another one is accepted there.
func accepts(from, to *host) bool {
	key := func(h *host, name string) *mesh.Peer {
		all := h.now()
		if i := slices.IndexFunc(all, func(p mesh.Peer) bool { return p.Name == name }); i >= 0 {
			return &all[i]
		}
		return &mesh.Peer{}
	}
	p, q := key(from, to.name), key(to, from.name)
	return p.Key != nil && q.Key != nil && (*p.Key == *q.Key || slices.Contains(q.Accept, *p.Key))
}

// A host that loses the directory for some seconds, at whichever step of another one's key,
// goes on with it then.
func TestSession_missesASteps(t *testing.T) {
	for after := 55; after < 65; after++ {
		synctest.Test(t, func(t *testing.T) {
			d := newMemory()
			c := &cut{of: &of{memory: d}}
			a := newHost(t, d, 1, func(c *Config) { c.Renew = time.Minute })
			b := newHost(t, d, 2, func(o *Config) { o.Directory = c })
			other := newHost(t, d, 3, func(c *Config) { c.Renew = 50 * time.Second })
			time.Sleep(time.Duration(after) * time.Second)
			c.set(true)
			time.Sleep(6 * time.Second)
			c.set(false)
			time.Sleep(5 * time.Second)
			for range 30 {
				time.Sleep(7 * time.Second)
				if !accepts(a, b) || !accepts(b, a) || len(b.Status().Problems) > 0 {
					t.Fatalf("cut after %d s: %t, %t, %+v", after, accepts(a, b), accepts(b, a), b.Status())
				}
			}
			if a.Status().Renewed < 2 {
				t.Errorf("%+v", a.Status())
			}
			for _, h := range []*host{a, b, other} {
				h.Close()
			}
		})
	}
}

// A host whose registration ended while it could not see that registers again.
func TestSession_ownEndMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		c := &cut{of: &of{memory: d}}
		a, b := newHost(t, d, 1, func(o *Config) { o.Directory = c }), newHost(t, d, 2, nil)
		<-a.Ready()
		<-b.Ready()
		time.Sleep(5 * time.Second)
		c.set(true)
		d.end("h1") // its lease
		time.Sleep(time.Minute)
		if len(b.names()) != 0 || len(a.names()) != 1 {
			t.Errorf("%v, %v", b.names(), a.names())
		}
		c.set(false)
		time.Sleep(10 * time.Second)
		if !accepts(a, b) || !accepts(b, a) || !a.Status().Registered {
			t.Errorf("not there again: %+v, %+v", a.Status(), b.Status())
		}
		a.Close()
		b.Close()
	})
}

// An answer of the directory that gets lost does not stop the renewals, and neither does a
// member that never sees anything.
func TestSession_renewsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		c := &cut{of: &of{memory: d}}
		a, b := newHost(t, d, 1, func(o *Config) { o.Directory, o.Renew = c, time.Minute }), newHost(t, d, 2, nil)
		c.loses.Store(true)
		time.Sleep(10 * time.Minute)
		if s := a.Status(); s.Renewed < 7 || c.loses.Load() {
			t.Errorf("after a lost answer: %+v", s)
		}
		deaf := mesh.Member{Name: "x", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.77:1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/16")},
			Keys: []mesh.PublicKey{mesh.NewPrivateKey(0).Public()}}
		if _, err := (&of{memory: d}).Put(t.Context(), deaf); err != nil {
			t.Fatal(err)
		}
		before := a.Status().Renewed
		time.Sleep(time.Hour)
		if n := a.Status().Renewed - before; n < 3 {
			t.Errorf("beside one that sees nothing: %d keys in an hour", n)
		}
		a.Close()
		b.Close()
	})
}

// A registration that somebody else writes over is written again.
func TestSession_overwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		a, b := newHost(t, d, 1, nil), newHost(t, d, 2, nil)
		<-a.Ready()
		<-b.Ready()
		time.Sleep(5 * time.Second)
		d.mu.Lock()
		m := d.members["h1"]
		d.mu.Unlock()
		m.Keys = append(slices.Clone(m.Keys), mesh.NewPrivateKey(7).Public())
		if _, err := (&of{memory: d}).Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		d.mu.Lock()
		defer d.mu.Unlock()
		if got := d.members["h1"].Keys; len(got) != 1 || !accepts(a, b) {
			t.Errorf("%v", got)
		}
		d.mu.Unlock()
		a.Close()
		b.Close()
		d.mu.Lock()
	})
}

// hangs is a directory whose first Puts are not answered, as by a server that has lost the others.
type hangs struct {
	Directory
	mu    sync.Mutex
	left  int
	waits []time.Duration
}

func (h *hangs) Put(ctx context.Context, m mesh.Member) (int64, error) {
	h.mu.Lock()
	hangs := h.left > 0
	h.left--
	h.mu.Unlock()
	if !hangs {
		return h.Directory.Put(ctx, m)
	}
	began := time.Now()
	<-ctx.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits = append(h.waits, time.Since(began))
	return 0, ctx.Err()
}

// A server of a directory that does not answer is given little time at first, as another one may, and more
// each time, as all may be busy.
func TestSession_unanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hangs{left: 4}
		a := newHost(t, newMemory(), 1, func(c *Config) { h.Directory, c.Directory = c.Directory, h })
		<-a.Ready()
		h.mu.Lock()
		if want := []time.Duration{minPatient, 2 * minPatient, maxPatient, maxPatient}; !slices.Equal(h.waits, want) {
			t.Errorf("%v", h.waits)
		}
		h.left, h.waits = 1, nil
		h.mu.Unlock()
		a.Session.c.Directory.(*hangs).Directory.(*of).memory.end("h1")
		time.Sleep(minPatient + 2*retry + time.Second)
		if s := a.Status(); !s.Registered || !slices.Equal(h.waits, []time.Duration{minPatient}) {
			t.Errorf("%v, %+v", h.waits, s)
		}
		a.Close()
	})
}
