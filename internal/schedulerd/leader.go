package schedulerd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"weft/hedera"
	"weft/hedera/store"
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
}

// dial makes a client of etcd. It does not wait for it.
func dial(f *File) (*clientv3.Client, error) {
	scheme := "http://"
	if f.tls != nil {
		scheme = "https://"
	}
	var list []string
	for _, e := range f.Etcd.Endpoints {
		list = append(list, scheme+e)
	}
	return clientv3.New(clientv3.Config{Endpoints: list, TLS: f.tls, Logger: zap.NewNop(),
		DialKeepAliveTime: f.Etcd.TTL, DialKeepAliveTimeout: f.Etcd.TTL})
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
	defer term.Close()
	c.seed++
	loop, err := c.begin(ctx, term)
	if err != nil {
		return err
	}
	c.server.lead(loop, term.Epoch())
	c.log.Infof(event.Configured, "this scheduler leads: epoch %d, %d flows taken over", term.Epoch(), loop.Flows())
	defer c.server.lead(nil, 0)
	return c.rounds(ctx, term)
}

// begin takes over what the leader before has placed, under this term's lease.
func (c *candidate) begin(ctx context.Context, term *store.Term) (*hedera.Loop, error) {
	c.server.mu.Lock()
	config := c.server.file.loop(c.seed)
	c.server.mu.Unlock()
	loop, err := hedera.NewLoop(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stored, _, err := store.Load(ctx, c.store, config.MaxFlows)
	if err != nil {
		return nil, err
	}
	var put, remove []hedera.Assignment
	for _, a := range stored {
		if loop.Adopt(a, c.server.now()) == nil {
			put = append(put, a)
		} else {
			remove = append(remove, a)
		}
	}
	return loop, term.Write(ctx, put, remove)
}

// bounded is for what etcd is to do within a placement's lifetime.
func (c *candidate) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.store.Lifetime)
}

// rounds places flows once a period.
func (c *candidate) rounds(ctx context.Context, term *store.Term) error {
	todo := newUnwritten()
	tick := time.NewTicker(c.period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-term.Done():
			return errors.New("etcd: the session has ended: etcd was not reached for etcd.ttl")
		case <-tick.C:
		}
		placed, changed, ended := c.server.round()
		todo.add(changed, ended)
		begun := time.Now()
		err := c.commit(ctx, term, todo, placed)
		if errors.Is(err, store.ErrDeposed) {
			return err
		}
		if err != nil {
			// Nobody is told what may not be stored. Placements expire until etcd answers.
			c.failed(err)
			continue
		}
		c.server.mu.Lock()
		c.server.stats.writeMS, c.server.stats.lastError = float64(time.Since(begun))/1e6, ""
		c.server.mu.Unlock()
		c.server.tell(placed, ended, c.store.Lifetime)
	}
}

// commit writes what has changed.
func (c *candidate) commit(ctx context.Context, term *store.Term, todo *unwritten, placed []hedera.Assignment) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	kept, err := term.Keep(ctx)
	if err != nil {
		return err
	}
	if !kept {
		todo.add(placed, nil) // the lease had ended, and all with it
	}
	put, remove := todo.lists()
	if err := term.Write(ctx, put, remove); err != nil {
		return err
	}
	clear(todo.put)
	clear(todo.remove)
	return nil
}
