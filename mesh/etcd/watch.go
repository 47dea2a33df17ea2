package etcd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/mesh"
	"weft/mesh/join"
)

// Watch is join.Directory's. It ends when the registration's lease has ended, too.
func (d *Directory) Watch(ctx context.Context, told func(join.Update)) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx)) // a member of etcd that has lost the others tells nothing new
	defer cancel(nil)
	d.mu.Lock()
	d.watch = cancel
	d.mu.Unlock()
	defer d.listening.stop()
	asked := d.history.mark()
	all, keys, header, err := d.all(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	told(join.Update{All: true, Restored: d.history.begin(header, asked), Put: all})
	d.listening.begin(header.Revision, keys)
	n := newNews()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel(nil)
	bound := time.AfterFunc(creation, func() { cancel(errNotCreated) })
	defer bound.Stop()
	reading.Go(func() {
		c := d.c.Client.Watch(ctx, d.members(), clientv3.WithPrefix(), clientv3.WithRev(header.Revision+1)) // waits until there is a watch
		bound.Stop()
		d.read(ctx, c, n)
	})
	for {
		<-n.some
		events, err := n.take()
		if u := d.update(events); len(u.Put)+len(u.Gone) > 0 && ctx.Err() == nil {
			told(u)
		}
		if err != nil {
			return err
		}
	}
}

// read reads what happens until the watch or the context ends.
func (d *Directory) read(ctx context.Context, c clientv3.WatchChan, n *news) {
	for r := range c {
		if err := r.Err(); err != nil {
			n.end(explain(err))
			return
		}
		d.history.follow(r.Header)
		d.listening.hear(r)
		if !n.add(r.Events) {
			return
		}
	}
	if ctx.Err() != nil {
		n.end(context.Cause(ctx))
		return
	}
	n.end(errors.New("etcd: the watch has ended"))
}

// pageSize is how many members are read at once.
const pageSize = 1000

// errTooMany says that there are more keys than members that a mesh may have. Some of them are not all of them:
// hosts that are left out would look as if they had gone.
var errTooMany = errors.New("etcd: there are too many keys")

// all reads all members, as they are at one revision: that of the header. It counts keys that are no
// registrations, too.
func (d *Directory) all(ctx context.Context) (all []mesh.Member, keys int64, header *pb.ResponseHeader, err error) {
	revision := int64(0)
	end := clientv3.GetPrefixRangeEnd(d.members())
	for from := d.members(); ; {
		r, err := d.page(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, nil, explain(err)
		}
		if revision == 0 {
			revision, keys, header = r.Header.Revision, r.Count, r.Header
			if keys > mesh.MaxMembers {
				return nil, 0, nil, fmt.Errorf("%w below %s: %d, and a mesh has %d members at most: remove those that no host has registered", errTooMany, d.members(), keys, mesh.MaxMembers)
			}
		}
		for _, kv := range r.Kvs {
			if m, ok := d.decode(kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision); ok {
				all = append(all, m)
			}
		}
		if !r.More {
			break
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
	slices.SortFunc(all, func(a, b mesh.Member) int { return int(a.Revision - b.Revision) })
	return all, keys, header, nil
}

// page reads some keys. If a member of etcd does not answer soon another one is asked.
func (d *Directory) page(ctx context.Context, from string, options ...clientv3.OpOption) (r *clientv3.GetResponse, err error) {
	for _, wait := range []time.Duration{soon, soon, patience} { // of three members one may be cut off, and another one just back
		once, cancel := context.WithTimeout(ctx, wait)
		r, err = d.c.Client.Get(once, from, options...)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return r, err
}

// update turns events into news. A key that is gone and there again is both.
func (d *Directory) update(events []*clientv3.Event) (u join.Update) {
	for _, e := range events {
		name, ok := d.nameOf(e.Kv.Key)
		if !ok {
			continue
		}
		i := slices.Index(u.Gone, name)
		if e.Type == clientv3.EventTypeDelete {
			u.Put = slices.DeleteFunc(u.Put, func(m mesh.Member) bool { return m.Name == name })
			if i < 0 {
				u.Gone = append(u.Gone, name)
			}
			continue
		}
		if m, ok := d.decode(e.Kv.Key, e.Kv.Value, e.Kv.ModRevision, e.Kv.CreateRevision); ok {
			if u.Put = append(u.Put, m); i >= 0 { // Since says that it is another registration
				u.Gone = slices.Delete(u.Gone, i, i+1)
			}
		}
	}
	return u
}

// decode reads a registration. One whose name is not that of its key, or that is none, is
// left out: anybody who may write there could have made it.
func (d *Directory) decode(key, value []byte, revision, since int64) (m mesh.Member, ok bool) {
	name, ok := d.nameOf(key)
	m, err := mesh.Decode(value)
	if !ok || err != nil || m.Name != name {
		return mesh.Member{}, false
	}
	m.Revision, m.Since = revision, since
	return m, true
}

func (d *Directory) nameOf(key []byte) (string, bool) {
	rest, ok := strings.CutPrefix(string(key), d.members())
	name, err := hex.DecodeString(rest)
	return string(name), ok && err == nil
}
