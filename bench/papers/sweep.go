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
// only to memory of their own run. A mutant runs in place of each: see Options.Mutant.
func Sweep(ctx context.Context, o Options, configs []sim.Config) ([]*sim.Result, error) {
	results := make([]*sim.Result, len(configs))
	err := Each(ctx, o, len(configs), func(i int) (err error) {
		results[i], err = sim.Run(o.mutated(configs[i]))
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
	if err := ctx.Err(); err != nil {
		return err
	}
	s := &sweep{run: run, turn: o.turn, errs: make([]error, n), progress: o.Progress}
	s.turn.pause()
	ended := make(chan struct{})
	var workers sync.WaitGroup
	for range min(max(o.Jobs, 1), n) {
		workers.Go(s.work)
	}
	go func() {
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		if !s.turn.resume() {
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
	run  func(i int) error
	turn *turn

	mu         sync.Mutex
	next, done int
	stopped    bool
	errs       []error
	progress   func(done, total int)
}

func (s *sweep) work() {
	for {
		i, ok := s.take()
		if !ok {
			return
		}
		began, ok := s.turn.enter()
		if !ok {
			s.end(i, context.Canceled)
			return
		}
		err := s.run(i)
		s.turn.leave(began)
		s.end(i, err)
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
