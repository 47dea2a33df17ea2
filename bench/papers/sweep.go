package papers

import (
	"context"
	"fmt"
	"sync"

	"weft/bench/sim"
)

// Sweep runs simulations, Options.Jobs at once, and returns their results in the order of
// configs, whatever Jobs is. See Each for errors.
//
// Runs share nothing: each Config has a Workload of its own, and functions that write
// only to memory of their own run. A variant runs in place of each: see Options.Variant.
func Sweep(ctx context.Context, o Options, configs []sim.Config) ([]*sim.Result, error) {
	results := make([]*sim.Result, len(configs))
	err := Each(ctx, o, len(configs), func(i int) (err error) {
		results[i], err = sim.Run(o.varied(configs[i]))
		return err
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// Play runs a simulation for each of the trials, by number, as Sweep does. config makes
// the simulation's Config, which reports its flows to w, a new W. over gives w the
// result; cutOff says that flows were still running at the end.
func Play[W any](ctx context.Context, o Options, trials int, config func(i int, w *W) (sim.Config, error), over func(i int, w *W, r *sim.Result, cutOff bool) error) ([]*W, error) {
	all, configs := make([]*W, trials), make([]sim.Config, trials)
	for i := range trials {
		all[i] = new(W)
		c, err := config(i, all[i])
		if err != nil {
			return nil, err
		}
		configs[i] = c
	}
	results, err := Sweep(ctx, o, configs)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		if err := over(i, all[i], r, r.End >= configs[i].Duration); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Hops sums up what runs have simulated.
func Hops(results []*sim.Result) (n uint64) {
	for _, r := range results {
		n += r.PacketHops
	}
	return n
}

// Each calls run for 0 to n-1, Options.Jobs at once, and reports progress, one call at a
// time. It returns the error of the lowest index that failed; later ones may not have
// run. When ctx is done it returns at once. Running calls end by themselves, so the
// caller must not read what they write. Units of a pool share its places, so run must not
// call Each.
func Each(ctx context.Context, o Options, n int, run func(i int) error) error {
	if err := ctx.Err(); err != nil || n == 0 {
		return err
	}
	s := &sweep{run: run, turn: o.turn, errs: make([]error, n), progress: o.Progress, ended: make(chan struct{})}
	s.working = min(max(o.Jobs, 1), n)
	for range s.working {
		i, ok := s.take()
		if !ok { // one has failed already
			s.leave()
			continue
		}
		go s.work(i, s.turn.ask())
	}
	s.turn.pause()
	select {
	case <-s.ended:
		if !s.turn.resume(s.back) {
			return context.Canceled
		}
		return s.failure()
	case <-ctx.Done():
		s.stop()
		return ctx.Err()
	}
}

// sweep is the state of Each.
type sweep struct {
	run   func(i int) error
	turn  *turn
	ended chan struct{} // closed when nobody works any more
	back  ticket        // the caller's, once it has ended

	mu         sync.Mutex
	working    int
	next, done int
	stopped    bool
	errs       []error
	progress   func(done, total int)
}

// work makes runs from i on until none is left. It asks for each next place before it
// leaves the one that it has.
func (s *sweep) work(i int, place ticket) {
	for more := true; more; {
		began, ok := s.turn.enter(place)
		if !ok {
			s.end(i, context.Canceled)
			s.leave()
			return
		}
		s.end(i, s.run(i))
		if i, more = s.take(); more {
			place = s.turn.ask()
		} else {
			s.leave()
		}
		s.turn.leave(began)
	}
}

// leave is the end of one who worked. The last one asks for the caller's place.
func (s *sweep) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working--; s.working == 0 {
		s.back = s.turn.ask()
		close(s.ended)
	}
}

// take hands out indices in order, so that whatever is before one that failed has
// been taken: the least that fails is the same whatever Jobs is.
func (s *sweep) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.next == len(s.errs) {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *sweep) end(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[i] = err
	if err != nil {
		s.stopped = true
	}
	if s.done++; s.progress != nil && !s.stopped {
		s.progress(s.done, len(s.errs))
	}
}

func (s *sweep) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

func (s *sweep) failure() error {
	for i, err := range s.errs {
		if err != nil {
			return fmt.Errorf("run %d of %d: %w", i+1, len(s.errs), err)
		}
	}
	return nil
}
