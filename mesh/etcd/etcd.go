// Package etcd is a directory of a mesh on etcd. Each member is a key under a lease: it ends
// some time after its host does. Keys are of the form PREFIX/members/NAME, with NAME in hex.
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

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/mesh"
	"weft/mesh/join"
)

// Config is where a mesh is.
type Config struct {
	Client *clientv3.Client // stays the caller's
	Prefix string           // of all keys: "/weft/mesh/production"
	// TTL is after how long a registration ends whose host does not reach etcd any more, in
	// whole seconds; 0: 10 s.
	TTL time.Duration
}

// Directory is a join.Directory.
type Directory struct {
	c Config

	mu    sync.Mutex
	lease clientv3.LeaseID // 0: none
	stop  context.CancelFunc
	watch context.CancelCauseFunc // ends the watch
	name  string                  // that this host is registered by; "" before the first time
	since int64                   // the revision of the first of its registrations that follow each other

	history   history
	listening listening
}

// DefaultTTL is Config.TTL's default.
const DefaultTTL = 10 * time.Second

// Open returns the directory. It does not wait for etcd.
func Open(c Config) (*Directory, error) {
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	switch {
	case c.Client == nil:
		return nil, errors.New("mesh/etcd: Config.Client is missing")
	case !strings.HasPrefix(c.Prefix, "/") || strings.HasSuffix(c.Prefix, "/"):
		return nil, fmt.Errorf("mesh/etcd: Config.Prefix %q: must begin with / and not end with one, such as /weft/mesh/production", c.Prefix)
	case c.TTL < time.Second || c.TTL > time.Hour:
		return nil, fmt.Errorf("mesh/etcd: Config.TTL is %v: must be from 1s to 1h", c.TTL)
	}
	return &Directory{c: c}, nil
}

func (d *Directory) members() string          { return d.c.Prefix + "/members/" }
func (d *Directory) keyOf(name string) string { return d.members() + hex.EncodeToString([]byte(name)) }

// How long an answer of etcd's is waited for: at first, as there are other members, and then.
const (
	soon     = 3 * time.Second
	patience = 10 * time.Second
)

// Put is join.Directory's. A registration of the same name is replaced if it has a key or the
// identity of m's or the lease of this Directory, or has been written over this one's. Else it is
// another host's: ErrTaken.
func (d *Directory) Put(ctx context.Context, m mesh.Member) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	value, err := m.Encode()
	if err != nil {
		return 0, err
	}
	key := d.keyOf(m.Name)
	if d.name != "" && d.name != m.Name {
		return 0, fmt.Errorf("mesh/etcd: this host is registered as %q already, and cannot be %q, too", d.name, m.Name)
	}
	if d.lease == clientv3.NoLease {
		if err := d.grant(ctx); err != nil {
			return 0, err
		}
	}
	ctx = clientv3.WithRequireLeader(ctx) // a member of etcd that has lost the others says so at once
	asked := d.history.mark()
	r, err := d.c.Client.Get(ctx, key)
	if err != nil {
		return 0, explain(err)
	}
	if asked.isBehind(r.Header) { // a keep-alive would find it out later
		if d.watch != nil {
			d.watch(errRestored)
		}
		return 0, errRestored
	}
	was := int64(0) // the revision that this one replaces
	if len(r.Kvs) > 0 {
		kv := r.Kvs[0]
		former, err := mesh.Decode(kv.Value)
		same := func(k mesh.PublicKey) bool {
			return slices.ContainsFunc(m.Keys, func(own mesh.PublicKey) bool { return own.Point == k.Point })
		}
		own := clientv3.LeaseID(kv.Lease) == d.lease || kv.CreateRevision == d.since ||
			err == nil && (slices.ContainsFunc(former.Keys, same) || m.Identity != mesh.PublicIdentity{} && former.Identity == m.Identity)
		if !own {
			return 0, join.ErrTaken
		}
		was = kv.ModRevision
	}
	t, err := d.c.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", was)).
		Then(clientv3.OpPut(key, string(value), clientv3.WithLease(d.lease))).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		d.forget()
		return 0, explain(err)
	case err != nil:
		return 0, explain(err)
	case !t.Succeeded:
		return 0, join.ErrTaken // between the two calls
	}
	d.history.follow(t.Header)
	d.name = m.Name
	if d.since = t.Header.Revision; was > 0 {
		d.since = r.Kvs[0].CreateRevision
	}
	return t.Header.Revision, nil
}

// grant gets a lease and keeps it alive. The caller holds the lock.
func (d *Directory) grant(ctx context.Context) error {
	r, err := d.c.Client.Grant(ctx, int64(d.c.TTL/time.Second))
	if err != nil {
		return explain(err)
	}
	alive, stop := context.WithCancel(context.Background())
	answers, err := d.c.Client.KeepAlive(alive, r.ID)
	if err != nil {
		stop()
		return fmt.Errorf("etcd: %w", err)
	}
	d.lease, d.stop = r.ID, stop
	go func() {
		for a := range answers {
			if d.history.behind(a.ResponseHeader) && d.restored(alive) {
				d.endWatch(errRestored)
			}
			d.history.follow(a.ResponseHeader)
			d.listen(alive, a.ResponseHeader)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lease == r.ID {
			d.forget()
			if d.watch != nil {
				d.watch(errLost)
			}
		}
	}()
	return nil
}

// forget gives the lease up. The caller holds the lock.
func (d *Directory) forget() {
	if d.stop != nil {
		d.stop()
	}
	d.lease, d.stop = clientv3.NoLease, nil
}

// endWatch ends the watch, which is then begun again.
func (d *Directory) endWatch(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watch != nil {
		d.watch(why)
	}
}

// errLost says that the registration has ended or will end.
var errLost = fmt.Errorf("etcd: the lease: %w", join.ErrEnded)

// Close takes the registration back. It waits for etcd for two seconds; if that fails, the
// registration ends with its lease.
func (d *Directory) Close() error {
	d.mu.Lock()
	lease := d.lease
	d.forget()
	d.mu.Unlock()
	if lease == clientv3.NoLease {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := d.c.Client.Revoke(ctx, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}
