package schedulerd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/hedera"
	"weft/hedera/store"
	"weft/internal/etcdclient"
	"weft/internal/event"
	"weft/internal/eventlog"
)

// againAfter is how long a scheduler waits after a term, or after etcd did not answer.
const againAfter = 200 * time.Millisecond

// candidate campaigns, and leads.
type candidate struct {
	server *server
	store  store.Config
	log    *eventlog.Log
	seed   uint64
	period time.Duration
	now    func() time.Duration

	atOnce   int           // maxWrite, but for tests
	writeFor time.Duration // writeFor, but for tests
}

// dial makes a client of etcd. It does not wait for it.
func dial(f *File) (*clientv3.Client, error) {
	return etcdclient.New(f.Etcd.Endpoints, f.tls, nil, f.Etcd.TTL)
}

// run campaigns and leads until the context ends.
func (c *candidate) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.term(ctx); err != nil && ctx.Err() == nil {
			c.failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// failed notes an error, and logs it if it is another one than the last.
func (c *candidate) failed(err error) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if errors.Is(err, store.ErrDeposed) {
		c.server.stats.deposed++
	} else {
		c.server.stats.writeFails++
	}
	if text := err.Error(); text != c.server.stats.lastError {
		c.server.stats.lastError = text
		c.log.Warnf(event.Trouble, "%v", err)
	}
}

// term waits to be elected, and leads until it is deposed.
func (c *candidate) term(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	term, err := store.Campaign(ctx, c.store)
	if err != nil {
		return err
	}
	defer c.resign(term)
	defer context.AfterFunc(term.Context(), cancel)() // nothing is waited for that is too late
	c.seed++
	loop, all, err := c.begin(ctx)
	if err != nil {
		return err
	}
	taken := loop.Flows() // while nobody reports to it yet
	c.server.lead(loop, term.Epoch())
	c.log.Infof(event.Configured, "this scheduler leads: epoch %d, %d flows taken over", term.Epoch(), taken)
	defer c.server.lead(nil, 0)
	return c.rounds(ctx, term, all)
}

// resign ends a term in order.
func (c *candidate) resign(term *store.Term) {
	if err := term.Close(); err != nil {
		c.log.Warnf(event.Trouble, "%s: etcd may believe for etcd.ttl that this scheduler leads: %v", notResigned, err)
	}
}

const notResigned = "the term did not end in order"

// begin takes over what the leader before has placed. It is to be written under this term's lease. What
// counts no more is to be removed, and withdrawn.
func (c *candidate) begin(ctx context.Context) (*hedera.Loop, *ledger, error) {
	c.server.mu.Lock()
	config := c.server.file.loop(c.seed)
	c.server.mu.Unlock()
	loop, err := hedera.NewLoop(config)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.bounded(ctx, c.store.Lifetime)
	defer cancel()
	stored, _, err := store.Load(ctx, c.store, config.MaxFlows)
	if err != nil {
		return nil, nil, err
	}
	l := &ledger{todo: newUnwritten()}
	for _, a := range stored {
		if loop.Adopt(a, c.server.now()) == nil {
			l.placed = append(l.placed, a)
		} else {
			l.withdrawn = append(l.withdrawn, a)
		}
	}
	l.todo.add(l.placed, l.withdrawn)
	return loop, l, nil
}

// bounded is for what etcd is to do while this scheduler leads, and within a time.
func (c *candidate) bounded(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(c.store.TTL, most))
}
