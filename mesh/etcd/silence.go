package etcd

import (
	"context"
	"errors"
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
	of     uint64 // the watch, by number
	until  int64  // the revision up to which all is known
	keys   int64  // that there are
	asking bool   // whether the watch has fallen silent
	next   time.Time
}

// askEach bounds how often etcd is asked whether it is further than a keep-alive says: a hundred times a second
// by all hosts, and by each once a minute.
func askEach(keys int64) time.Duration {
	return min(time.Duration(keys)*10*time.Millisecond, time.Minute)
}

// begin says that a watch begins behind a revision, at which there are some keys.
func (l *listening) begin(revision, keys int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of++
	l.until, l.keys = revision, keys
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
	if l.of == 0 || l.asking || r.GetRevision() <= l.until && now.Before(l.next) {
		return at, false
	}
	l.asking, l.next = true, now.Add(askEach(l.keys))
	return state{l.of, l.until, l.keys}, true
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
		if !waits() {
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
			d.endWatch(errSilent)
		}
	}()
}
