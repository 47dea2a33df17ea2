package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"weft/mesh/join"
	"weft/mesh/open"
)

// bed is a mesh at work.
type bed struct {
	o       Options
	cluster *cluster
	book    *book
	start   time.Time
	all     sync.WaitGroup // goroutines
	done    chan struct{}  // closed when hosts and traffic are to end

	mu      sync.Mutex
	hosts   map[string]*host // that are registered, or are to be
	was     []*host          // all that there have been
	errors  []string
	cuts    Cuts
	traffic Traffic
	foreign Foreign
	brought map[string]uint8 // the key of the former registration that was brought back, by name
}

// now is the time since the beginning.
func (b *bed) now() time.Duration { return time.Since(b.start) }

// notef tells what happens.
func (b *bed) notef(format string, args ...any) {
	if b.o.Notes != nil {
		fmt.Fprintf(b.o.Notes, "%8.2f "+format+"\n", append([]any{b.now().Seconds()}, args...)...)
	}
}

// failf notes what should not be.
func (b *bed) failf(format string, args ...any) {
	b.mu.Lock()
	if len(b.errors) < 20 {
		b.errors = append(b.errors, fmt.Sprintf("after %.1f s: ", b.now().Seconds())+fmt.Sprintf(format, args...))
	}
	b.mu.Unlock()
	b.notef(format, args...)
}

func (b *bed) add(h *host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts[h.name] = h
	b.was = append(b.was, h)
}

// remove takes note that a host ends.
func (b *bed) remove(h *host) {
	b.mu.Lock()
	if b.hosts[h.name] == h {
		delete(b.hosts, h.name)
	}
	b.mu.Unlock()
	b.book.excuse(h.name)
}

// reached are the hosts that etcd reaches.
func (b *bed) reached() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, h := range b.hosts {
		if !h.etcd.isCut() {
			names = append(names, name)
		}
	}
	return names
}

// staying are the hosts that stay until the end.
func (b *bed) staying() (list []*host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.hosts)) {
		if h := b.hosts[name]; h.n < b.o.Hosts-b.o.churning() {
			list = append(list, h)
		}
	}
	return list
}

// pause waits. It reports false when all is to end.
func (b *bed) pause(d time.Duration) bool {
	select {
	case <-b.done:
		return false
	case <-time.After(d):
		return true
	}
}

// between is a random time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// Run measures a mesh. It needs the program etcd, and no privilege.
func Run(ctx context.Context, o Options) (r *Result, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := newCluster(ctx)
	if err != nil {
		return nil, err
	}
	b := &bed{o: o, cluster: c, book: newBook(), start: time.Now(), done: make(chan struct{}), hosts: make(map[string]*host), brought: make(map[string]uint8)}
	b.foreign.Usurped = make([]Usurpation, ways)
	for i, name := range wayNames {
		b.foreign.Usurped[i].What = name
	}
	b.book.late = func(what string) { b.notef("%s", what) }
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.watch(ctx); err != nil {
		return nil, err
	}
	b.notef("etcd has a leader")
	for n := range o.Hosts - o.churning() {
		h, err := b.begin(n, nil, joins)
		if err != nil {
			return nil, err
		}
		if err := h.serve(); err != nil {
			return nil, err
		}
	}
	if err := b.awaitWhole(ctx); err != nil {
		return nil, err
	}
	b.notef("%d hosts know each other", o.Hosts-o.churning())
	if err := b.talk(ctx); err != nil {
		return nil, err
	}
	for i := range o.churning() {
		b.all.Go(func() { b.churn(i) })
	}
	b.all.Go(b.forge)
	b.all.Go(func() { b.usurp(ctx) })
	if err := b.faults(ctx); err != nil {
		return nil, err
	}
	b.notef("waiting for the last to act")
	whole := b.awaitWhole(ctx)
	err = c.await(ctx, "all hosts have replaced their keys", func() bool {
		return !slices.ContainsFunc(b.staying(), func(h *host) bool { h.mu.Lock(); defer h.mu.Unlock(); return h.renewed == 0 })
	})
	if err != nil {
		b.failf("%v", err)
	}
	close(b.done)
	b.all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := b.control(); err != nil {
		return nil, err
	}
	return b.result(whole == nil), nil
}

// watch has the book learn when registrations end.
func (b *bed) watch(ctx context.Context) error {
	var at string
	for i, c := range b.cluster.clients {
		if i > 0 {
			at += ","
		}
		at += c
	}
	d, err := open.Directory("etcd://"+at+prefix, open.Options{TTL: b.o.TTL})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	b.all.Go(func() { <-b.done; cancel() })
	b.all.Go(func() {
		defer d.Close()
		for ctx.Err() == nil {
			_ = d.Watch(ctx, func(u join.Update) { // it ends when there is no leader
				for _, name := range u.Gone {
					b.book.ended(name, b.now())
				}
			})
			b.pause(100 * time.Millisecond)
		}
	})
	return nil
}

// awaitWhole waits until the hosts that stay know each other, and etcd knows them.
func (b *bed) awaitWhole(ctx context.Context) error {
	var why string
	err := b.cluster.await(ctx, "the hosts know each other", func() bool {
		all := b.staying()
		for _, h := range all {
			s := h.session.Status()
			if !s.Registered || !s.Following {
				why = fmt.Sprintf("%s: %+v", h.name, s)
				return false
			}
			for _, other := range all {
				if _, ok := h.present(other.name); !ok && h != other {
					why = fmt.Sprintf("%s does not know %s", h.name, other.name)
					return false
				}
			}
		}
		return true
	})
	if err != nil {
		b.failf("%v: %s", err, why)
	}
	return err
}

// close ends all.
func (b *bed) close() error {
	select {
	case <-b.done:
	default:
		close(b.done)
	}
	for _, h := range b.staying() {
		b.remove(h)
		if err := h.leave(); err != nil {
			b.notef("%s leaves: %v", h.name, err) // etcd ends, too: what it answers is of no matter
		}
	}
	b.all.Wait()
	for _, h := range b.was {
		h.closeRelays()
	}
	return b.cluster.close()
}

// result sums up.
func (b *bed) result(whole bool) *Result {
	b.foreign.Usurped = b.usurped()
	r := &Result{Hosts: b.o.Hosts, Kills: b.o.Kills, Cuts: b.cuts, Seconds: b.now().Seconds(), Rows: b.book.rows(), Left: b.book.left, Traffic: b.traffic, Foreign: b.foreign, Whole: whole, Errors: b.errors}
	for _, h := range b.staying() {
		s := h.Host.Stats().Tunnel
		refused := s.Forged + s.Malformed
		if refused > 0 && !b.attacked(h) {
			b.notef("%s: %+v", h.name, s)
		}
		if b.attacked(h) {
			r.Foreign.Refused += refused + s.Replayed + s.UnknownPeer
		} else {
			r.Traffic.Refused += refused
			r.Traffic.Late += s.Replayed
		}
	}
	for _, h := range b.was {
		h.mu.Lock()
		if h.n < b.o.Hosts-b.o.churning() {
			r.Renewed += h.renewed
		}
		r.Foreign.AcceptedBytes += h.accepted
		r.Foreign.ControlArrived += h.control
		if h.told != "" && len(r.Errors) < 20 {
			r.Errors = append(r.Errors, h.name+": "+h.told)
		}
		h.mu.Unlock()
	}
	return r
}
