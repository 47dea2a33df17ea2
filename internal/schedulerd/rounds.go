package schedulerd

import (
	"context"
	"errors"
	"time"

	"weft/hedera"
	"weft/hedera/store"
)

// maxWrite is how many changes are written at once: what was written of more is not written again.
const maxWrite = 1000

// writeFor is how long a round writes. What is left is for the next ones, which compute nothing until
// all is written: so no more flows change than etcd takes.
const writeFor = time.Second / 2

var errSession = errors.New("etcd: the session has ended: etcd was not reached for etcd.ttl")

// ledger is what a leader has placed, and what of it etcd and the nodes do not know yet.
type ledger struct {
	placed    []hedera.Assignment
	withdrawn []hedera.Assignment // that nodes have not been told of
	todo      *unwritten
}

// rounds places flows once a period. It begins with what the leader before has placed, which nodes are
// told as soon as it is written.
func (c *candidate) rounds(ctx context.Context, term *store.Term, l *ledger) error {
	tick := time.NewTicker(c.period)
	defer tick.Stop()
	told := c.now()
	for first := true; ; first = false {
		if !first || l.todo.changes() == 0 {
			select {
			case <-ctx.Done():
				return sessionError(term)
			case <-tick.C:
			}
		}
		if l.todo.changes() == 0 {
			var changed, ended []hedera.Assignment
			l.placed, changed, ended = c.server.round()
			l.todo.add(changed, ended)
			l.withdrawn = append(l.withdrawn, ended...)
		}
		begun := time.Now()
		wrote, err := c.commit(ctx, term, l, told+c.store.Lifetime)
		c.server.mu.Lock()
		c.server.stats.unwritten = l.todo.changes()
		c.server.mu.Unlock()
		switch {
		case err == nil:
			c.server.mu.Lock()
			c.server.stats.writeMS, c.server.stats.lastError = float64(time.Since(begun))/1e6, ""
			c.server.mu.Unlock()
		case errors.Is(err, store.ErrDeposed), ctx.Err() != nil:
			return err
		case !wrote && c.now()-told >= c.store.Lifetime:
			return err // placements have expired: another scheduler may reach etcd
		default:
			c.failed(err)
		}
		if term.Context().Err() != nil {
			return errSession
		}
		if wrote { // else nobody is told: placements expire until etcd answers
			c.tell(l)
			told = c.now()
		}
	}
}

// sessionError says whether a term has ended for its session.
func sessionError(term *store.Term) error {
	if term.Context().Err() != nil {
		return errSession
	}
	return nil
}

// tell tells nodes what is written. What has ended, or lost its path, since the last round is not told
// again but withdrawn, which needs no write before. The next round has it removed from etcd.
func (c *candidate) tell(l *ledger) {
	var gone []hedera.Assignment
	l.placed, gone = c.server.holding(l.placed)
	told, _ := l.todo.divide(l.placed)
	withdrawn, later := l.todo.divide(l.withdrawn)
	l.withdrawn = later
	c.server.tell(told, append(withdrawn, gone...), c.store.Lifetime)
}

// commit writes what has changed, at least some of it, until a time at most. wrote: something was written,
// if only nothing new, so this scheduler leads.
func (c *candidate) commit(ctx context.Context, term *store.Term, l *ledger, until time.Duration) (wrote bool, err error) {
	kept, err := c.keep(ctx, term, until)
	if err != nil {
		return false, err
	}
	if !kept {
		l.todo.add(l.placed, nil) // the lease had ended, and all with it
	}
	put, remove := l.todo.lists()
	for begun := time.Now(); ; {
		some, gone := put[:min(len(put), c.atOnce)], remove[:min(len(remove), c.atOnce)]
		if err := c.write(ctx, term, some, gone, until); err != nil {
			return wrote, err
		}
		wrote = true
		l.todo.written(some, gone)
		put, remove = put[len(some):], remove[len(gone):]
		if len(put)+len(remove) == 0 || time.Since(begun) >= c.writeFor {
			return true, nil
		}
	}
}

// left is the time until then. A leader that is late for want of a processor tries all the same.
func (c *candidate) left(until time.Duration) time.Duration { return max(until-c.now(), againAfter) }

func (c *candidate) keep(ctx context.Context, term *store.Term, until time.Duration) (bool, error) {
	ctx, cancel := c.bounded(ctx, c.left(until))
	defer cancel()
	return term.Keep(ctx)
}

func (c *candidate) write(ctx context.Context, term *store.Term, put, remove []hedera.Assignment, until time.Duration) error {
	ctx, cancel := c.bounded(ctx, c.left(until))
	defer cancel()
	return term.Write(ctx, put, remove)
}
