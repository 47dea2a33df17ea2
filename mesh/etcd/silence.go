package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Bounds of a watch. The client waits without one for a watch to be created, and begins it anew by itself
// when a connection breaks, as long as that takes.
const (
	creation = 5 * time.Second // until etcd says that there is a watch
	grace    = time.Second     // for news that are under way
)

// Why a watch ends.
var (
	errNotCreated = errors.New("etcd: there is no watch after 5 s: all is read anew, from another member")
	errSilent     = errors.New("etcd: the watch has fallen silent: all is read anew, from another member")
)

// listening is how much of a directory a watch has told. The revisions of keep-alives say whether there is
// more in etcd, which may be of others.
type listening struct {
	mu     sync.Mutex
	of     uint64    // number of the watch
	until  int64     // the revision up to which all is known
	keys   int64     // that there are
	on     bool      // there is one
	asking bool      // whether the watch has fallen silent
	next   time.Time // before which etcd is not asked again
	reads  time.Time // before which all keys are not looked through again
}

// askEach is how often a host asks etcd about one key, on average: all of up to 6,000 ask a hundred times a
// second, and of more each asks once a minute.
func askEach(keys int64) time.Duration {
	return min(time.Duration(keys)*10*time.Millisecond, time.Minute)
}

// readEach is how often a host has etcd look through all keys, on average, where others write to it: it reads
// 200,000 a second for all of up to 26,800 hosts, and for more for each once an hour.
func readEach(keys int64) time.Duration {
	return min(time.Duration(keys)*time.Duration(keys)*5*time.Microsecond, time.Hour)
}

// about is a random time around another one: not all hosts ask at once.
func about(d time.Duration) time.Duration {
	return d/2 + rand.N(max(d, 0)+1)
}

// begin says that a watch begins behind a revision, at which there are some keys.
func (l *listening) begin(revision, keys int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of++
	l.on, l.until, l.keys = true, revision, keys
}

// stop says that the watch ends: what it has told says nothing of the next one.
func (l *listening) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of++
	l.on = false
}

// hear takes note of what a watch tells.
func (l *listening) hear(r clientv3.WatchResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range r.Events {
		switch {
		case e.Type == clientv3.EventTypeDelete:
			l.keys--
		case e.IsCreate():
			l.keys++
		}
		l.until = max(l.until, e.Kv.ModRevision)
	}
}

// state is how far a watch was.
type state struct {
	of          uint64
	until, keys int64
}

// now returns how far the watch is.
func (l *listening) now() state {
	l.mu.Lock()
	defer l.mu.Unlock()
	return state{l.of, l.until, l.keys}
}

// asks reports whether the caller is to find out if the watch has fallen silent: etcd is further than it, or
// the member of etcd may be as far behind as its watch. The caller calls asked then.
func (l *listening) asks(r *pb.ResponseHeader, now time.Time) (at state, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on || l.asking || now.Before(l.next) {
		return at, false
	}
	l.asking, l.next = true, now.Add(about(askEach(l.keys)))
	return state{l.of, l.until, l.keys}, true
}

// mayRead reports whether all keys may be looked through.
func (l *listening) mayRead(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.reads) {
		return false
	}
	l.reads = now.Add(about(readEach(l.keys)))
	return true
}

// asked says that the answer has come: nothing is missing up to a revision; 0: nobody knows.
func (l *listening) asked(at state, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	if l.of == at.of && l.until == at.until {
		l.until = max(l.until, revision)
	}
}

// endSilent ends a watch that has not told anything since it was at a state.
func (d *Directory) endSilent(at state) {
	d.mu.Lock()
	defer d.mu.Unlock() // no other watch begins meanwhile
	if d.watch != nil && d.listening.now() == at {
		d.watch(errSilent)
	}
}

// listen ends a watch that has fallen silent, given the answer to a keep-alive.
func (d *Directory) listen(ctx context.Context, r *pb.ResponseHeader) {
	at, ok := d.listening.asks(r, time.Now())
	if !ok {
		return
	}
	go func() {
		revision := int64(0)
		defer func() { d.listening.asked(at, revision) }()
		waits := func() bool { // for news; it reports whether there are none
			select {
			case <-ctx.Done():
				return false
			case <-time.After(grace):
				return d.listening.now() == at
			}
		}
		get := func(key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
			once, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), soon)
			defer cancel()
			return d.c.Client.Get(once, key, options...)
		}
		if r.GetRevision() <= at.until {
			if now, err := get(d.members()); err != nil || now.Header.GetRevision() <= at.until { // there is no such key: a quorum says how far it is
				return
			}
		}
		if !waits() || !d.listening.mayRead(time.Now()) {
			return
		}
		has, err := get(d.members(), clientv3.WithPrefix(), clientv3.WithMinModRev(at.until+1), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return
		}
		if len(has.Kvs) == 0 && has.Count == at.keys {
			revision = has.Header.GetRevision() // what else there is in etcd is others'
			return
		}
		if waits() {
			d.endSilent(at)
		}
	}()
}
