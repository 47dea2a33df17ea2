package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/hedera"
	"weft/hedera/store/storetest"
	"weft/internal/kernel/kerneltest"
)

// members is how many etcd has.
const members = 3

// trial is a run of schedulers that are killed.
type trial struct {
	t         *testing.T
	c         *storetest.Cluster
	h         history
	rng       *rand.Rand
	unguarded bool
	flows     int
	load      int // writes between two kills

	mu       sync.Mutex
	terms    int
	writes   int
	refused  int
	unknown  int
	gaps     []time.Duration // from a kill to the next leader
	killedAt time.Time
	leader   *leading
	paths    int
}

// leading is a scheduler in its term.
type leading struct {
	term *Term
	stop context.CancelFunc
	done chan struct{}
}

// scheduler campaigns and writes, again and again. What it writes says who and when, so
// that no two writes are alike.
func (r *trial) scheduler(ctx context.Context, self string) {
	for ctx.Err() == nil {
		mine, stop := context.WithCancel(ctx)
		r.lead(mine, stop, self)
		stop()
	}
}

func (r *trial) lead(ctx context.Context, stop context.CancelFunc, self string) {
	c := configOf(r.c, self)
	c.unguarded = r.unguarded
	c.Lifetime = time.Hour // the model does not know of placements that end with their lease
	defer c.Client.Close()
	id, call := r.h.client(), r.h.now()
	term, err := Campaign(ctx, c)
	if err != nil {
		return
	}
	r.h.add(id, act{kind: elects, epoch: term.Epoch()}, outcome{}, call, r.h.now())
	me := &leading{term, stop, make(chan struct{})}
	defer close(me.done)
	r.mu.Lock()
	r.terms++
	if !r.killedAt.IsZero() {
		r.gaps = append(r.gaps, time.Since(r.killedAt))
		r.killedAt = time.Time{}
	}
	if r.leader == nil || r.leader.term.Epoch() < term.Epoch() {
		r.leader = me
	}
	r.mu.Unlock()
	// Who was deposed is not waited for.
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.leader == me {
			r.leader = nil
		}
	}()
	// It writes on until it is told that it is deposed, whatever its session says: a
	// scheduler that was held, and goes on.
	for f := 0; ctx.Err() == nil; f = (f + 1) % r.flows {
		r.mu.Lock()
		r.paths++
		path := r.paths
		r.mu.Unlock()
		call := r.h.now()
		once, cancel := c.bounded(ctx)
		err := term.Write(once, []hedera.Assignment{assignmentOf(f, path)}, nil)
		cancel()
		in := act{kind: writes, flow: f, epoch: term.Epoch(), path: path}
		r.mu.Lock()
		r.writes++
		r.mu.Unlock()
		switch {
		case err == nil:
			r.h.add(id, in, outcome{}, call, r.h.now())
		case errors.Is(err, ErrDeposed):
			r.h.add(id, in, outcome{refused: true}, call, r.h.now())
			r.mu.Lock()
			r.refused++
			r.mu.Unlock()
			return
		default:
			r.h.add(id, in, outcome{unknown: true}, call, forever)
			r.mu.Lock()
			r.unknown++
			r.mu.Unlock()
			id = r.h.client()
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *trial) reader(ctx context.Context) {
	c, id := configOf(r.c, "reader"), r.h.client()
	for f := 0; ctx.Err() == nil; f = (f + 1) % r.flows {
		call := r.h.now()
		once, cancel := c.bounded(ctx)
		a, ok, err := Get(once, c, tupleOf(f))
		cancel()
		if err == nil {
			out := outcome{}
			if ok {
				out.path = a.Path
			}
			r.h.add(id, act{kind: reads, flow: f}, out, call, r.h.now())
		}
		pause(ctx, 7*time.Millisecond)
	}
}

// run kills leaders and members, and returns whether the history is linearizable.
func (r *trial) run(kills int) bool {
	ctx, cancel := context.WithCancel(r.t.Context())
	var all sync.WaitGroup
	for _, self := range []string{"a", "b", "c"} {
		all.Go(func() { r.scheduler(ctx, self) })
	}
	for range 2 {
		all.Go(func() { r.reader(ctx) })
	}
	admin := r.c.Client()
	for i := range kills {
		was := r.waitForLeader(nil)
		if was == nil {
			break
		}
		// What is written while all is well.
		r.waitForWrites(r.load)
		r.mu.Lock()
		r.killedAt = time.Now()
		r.mu.Unlock()
		switch {
		case i%3 == 0:
			// Its session ends, and it does not know: two believe to lead.
			revoke(ctx, admin, was.term.session.Lease())
		case i%3 == 1:
			was.stop() // it is gone; its session ends when it has been silent for long
			r.c.Kill(r.rng.IntN(members))
		default:
			i := r.rng.IntN(members)
			r.c.Kill(i)
			revoke(ctx, admin, was.term.session.Lease())
		}
		if r.waitForLeader(was) == nil {
			break
		}
		for _, m := range r.c.Killed() {
			r.c.Start(m)
		}
		r.waitForWrites(r.load)
	}
	cancel()
	all.Wait()
	return r.h.check(r.t, r.flows)
}

// revoke ends a session, also while etcd elects a leader of its own.
func revoke(ctx context.Context, c *clientv3.Client, lease clientv3.LeaseID) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Revoke(once, lease)
		cancel()
		if err == nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// waitForLeader waits for a leader that is another one.
func (r *trial) waitForLeader(was *leading) *leading {
	for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		l := r.leader
		r.mu.Unlock()
		if l != nil && l != was {
			return l
		}
	}
	r.t.Error("no scheduler leads")
	return nil
}

func (r *trial) waitForWrites(n int) {
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.writes
	}
	from := count()
	for end := time.Now().Add(kerneltest.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if count() >= from+n {
			return
		}
	}
	r.t.Error("nobody writes")
}

func newTrial(t *testing.T, unguarded bool) *trial {
	return &trial{t: t, c: storetest.New(t, members), h: history{start: time.Now()}, rng: rand.New(rand.NewPCG(1, 2)), unguarded: unguarded, flows: 3, load: 10}
}
