package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// errSession says that a scheduler was no candidate any more while it waited.
var errSession = errors.New("the session has ended while the scheduler waited to be elected: etcd was not reached for etcd.ttl")

// Term is the time of a leader.
type Term struct {
	c       Config
	session *concurrency.Session
	lease   clientv3.LeaseID // of the placements
	key     string
	rev     int64
}

// Campaign waits until this scheduler leads. The context ends the waiting; Close ends the
// term.
//
// Etcd's own election waits for the keys of earlier candidates to go, and does not notice
// when its own key goes, as happens when its session ends. Here that ends the waiting, and
// who is elected holds its key.
func Campaign(ctx context.Context, c Config) (*Term, error) {
	id, err := c.grant(ctx, c.TTL)
	if err != nil {
		return nil, err
	}
	// Not with this context: Close has to reach etcd after it has ended.
	session, err := concurrency.NewSession(c.Client, concurrency.WithLease(id), concurrency.WithTTL(int(seconds(c.TTL))))
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	t := &Term{c: c, session: session}
	if err := t.campaign(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Term) campaign(ctx context.Context) error {
	// A member of etcd that has lost the others ends the waiting, too.
	waiting, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	defer context.AfterFunc(t.session.Ctx(), stop)()
	e := concurrency.NewElection(t.session, t.c.Prefix+"/leader")
	if err := e.Campaign(waiting, t.c.Self); err != nil {
		if t.session.Ctx().Err() != nil && ctx.Err() == nil {
			err = errSession
		}
		return fmt.Errorf("etcd: %w", err)
	}
	t.key, t.rev = e.Key(), e.Rev()
	once, cancel := t.c.bounded(waiting)
	defer cancel()
	r, err := t.c.Client.Get(once, t.key)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	if len(r.Kvs) == 0 || r.Kvs[0].CreateRevision != t.rev {
		return fmt.Errorf("etcd: %w", errSession)
	}
	t.lease, err = t.c.grant(waiting, t.c.Lifetime)
	return err
}

// Epoch is a number that grows from one leader to the next.
func (t *Term) Epoch() uint64 { return uint64(t.rev) }

// Done is closed when the session has ended, as etcd was not reached in time or somebody
// has revoked it.
func (t *Term) Done() <-chan struct{} { return t.session.Done() }

// Context ends with the session.
func (t *Term) Context() context.Context { return t.session.Ctx() }

// Close ends the term in order: another scheduler may lead at once. It waits for etcd for
// a bounded time; if that fails the session ends after its TTL.
func (t *Term) Close() error {
	t.session.Orphan()
	ctx, cancel := t.c.bounded(context.Background())
	defer cancel()
	if _, err := t.c.Client.Revoke(ctx, t.session.Lease()); err != nil && !gone(err) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// seconds rounds up, as leases know whole seconds.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// grant returns a new lease.
func (c *Config) grant(ctx context.Context, lasts time.Duration) (clientv3.LeaseID, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	r, err := c.Client.Grant(ctx, max(1, seconds(lasts)))
	if err != nil {
		return clientv3.NoLease, fmt.Errorf("etcd: %w", err)
	}
	return r.ID, nil
}

// patience bounds how long one answer of etcd is waited for, whatever the TTL.
const patience = 10 * time.Second

func (c *Config) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

// Watch calls told with each change of who leads, until the context ends.
func Watch(ctx context.Context, c Config, told func(self string, epoch uint64)) {
	for ctx.Err() == nil {
		// Observing needs no session of its own, only its client.
		session, err := concurrency.NewSession(c.Client, concurrency.WithTTL(int(seconds(c.TTL))), concurrency.WithContext(ctx))
		if err == nil {
			for r := range concurrency.NewElection(session, c.Prefix+"/leader").Observe(clientv3.WithRequireLeader(ctx)) {
				if len(r.Kvs) > 0 {
					told(string(r.Kvs[0].Value), uint64(r.Kvs[0].CreateRevision))
				}
			}
			session.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.TTL / 4):
		}
	}
}
