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

// maxFailures is after how many rounds in a row that could not be written a leader resigns.
const maxFailures = 5

// maxWrite is how many changes are written at once: what was written of more is not written again.
const maxWrite = 1000

// writeFor is how long a round writes. What is left is for the next ones, which compute nothing until
// all is written: so no more flows change than etcd takes.
const writeFor = time.Second / 2

var errSession = errors.New("etcd: the session has ended: etcd was not reached for etcd.ttl")

// candidate campaigns, and leads.
type candidate struct {
	server *server
	store  store.Config
	log    *eventlog.Log
	seed   uint64
	period time.Duration

	atOnce   int           // maxWrite, but for tests
	writeFor time.Duration // writeFor, but for tests
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
	defer context.AfterFunc(term.Context(), cancel)() // nothing is waited for that is too late
	c.seed++
	loop, placed, todo, err := c.begin(ctx)
	if err != nil {
		return err
	}
	taken := loop.Flows() // while nobody reports to it yet
	c.server.lead(loop, term.Epoch())
	c.log.Infof(event.Configured, "this scheduler leads: epoch %d, %d flows taken over", term.Epoch(), taken)
	defer c.server.lead(nil, 0)
	return c.rounds(ctx, term, placed, todo)
}

// begin takes over what the leader before has placed. It is to be written under this term's lease.
func (c *candidate) begin(ctx context.Context) (loop *hedera.Loop, placed []hedera.Assignment, todo *unwritten, err error) {
	c.server.mu.Lock()
	config := c.server.file.loop(c.seed)
	c.server.mu.Unlock()
	if loop, err = hedera.NewLoop(config); err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	stored, _, err := store.Load(ctx, c.store, config.MaxFlows)
	if err != nil {
		return nil, nil, nil, err
	}
	todo = newUnwritten()
	for _, a := range stored {
		if loop.Adopt(a, c.server.now()) == nil {
			placed = append(placed, a)
		} else {
			todo.remove[a.Tuple] = a
		}
	}
	todo.add(placed, nil)
	return loop, placed, todo, nil
}

// bounded is for what etcd is to do while this scheduler leads and placements last.
func (c *candidate) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(c.store.TTL, c.store.Lifetime))
}

// rounds places flows once a period. It begins with what is placed, and what of it is to be written.
func (c *candidate) rounds(ctx context.Context, term *store.Term, placed []hedera.Assignment, todo *unwritten) error {
	var withdrawn []hedera.Assignment // that nodes have not been told of
	failures := 0
	tick := time.NewTicker(c.period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return sessionError(term)
		case <-tick.C:
		}
		if todo.changes() == 0 {
			var changed, ended []hedera.Assignment
			placed, changed, ended = c.server.round()
			todo.add(changed, ended)
			withdrawn = append(withdrawn, ended...)
		}
		begun := time.Now()
		err := c.commit(ctx, term, todo, placed)
		c.server.mu.Lock()
		c.server.stats.unwritten = todo.changes()
		c.server.mu.Unlock()
		if errors.Is(err, store.ErrDeposed) {
			return err
		}
		if err != nil {
			// Nobody is told what may not be stored. Placements expire until etcd answers.
			if failures++; failures == maxFailures || ctx.Err() != nil {
				return err
			}
			c.failed(err)
			continue
		}
		failures = 0
		if term.Context().Err() != nil {
			return errSession
		}
		c.server.mu.Lock()
		c.server.stats.writeMS, c.server.stats.lastError = float64(time.Since(begun))/1e6, ""
		c.server.mu.Unlock()
		told, _ := todo.divide(placed)
		gone, later := todo.divide(withdrawn)
		c.server.tell(told, gone, c.store.Lifetime)
		withdrawn = later
	}
}

// sessionError says whether a term has ended for its session.
func sessionError(term *store.Term) error {
	if term.Context().Err() != nil {
		return errSession
	}
	return nil
}

// commit writes what has changed, at least some of it.
func (c *candidate) commit(ctx context.Context, term *store.Term, todo *unwritten, placed []hedera.Assignment) error {
	kept, err := c.keep(ctx, term)
	if err != nil {
		return err
	}
	if !kept {
		todo.add(placed, nil) // the lease had ended, and all with it
	}
	put, remove := todo.lists()
	for begun := time.Now(); ; {
		some, gone := put[:min(len(put), c.atOnce)], remove[:min(len(remove), c.atOnce)]
		if err := c.write(ctx, term, some, gone); err != nil {
			return err
		}
		todo.written(some, gone)
		put, remove = put[len(some):], remove[len(gone):]
		if len(put)+len(remove) == 0 || time.Since(begun) >= c.writeFor {
			return nil
		}
	}
}

func (c *candidate) keep(ctx context.Context, term *store.Term) (bool, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return term.Keep(ctx)
}

func (c *candidate) write(ctx context.Context, term *store.Term, put, remove []hedera.Assignment) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return term.Write(ctx, put, remove)
}
