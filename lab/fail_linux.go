package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weft/internal/kernel"
	"weft/topology"
)

// Fail makes a link, such as e0.0-a0.2, or a node with all its links fail, and
// returns the time just before the first of them did. What has already failed in
// that mode stays failed, and the time is that of the call. What has failed in
// another mode must be healed first. A link that fails by itself and with a node
// stays failed until both are healed.
//
// A loud failure sets the port at the link's upper end down. The lower end then
// loses its carrier at once, as both ends of a cut cable would, and its ECMP uses
// another way up. The kernel deletes routes over a port that is set down. At the
// upper end these are the fewest, and they are ways down, which have no
// alternative anyway. Switch agents see the port of either end. A silent failure
// drops what comes in at both ends.
//
// The state is kept with the lab, so that another process can heal it.
func (l *Lab) Fail(target string, mode FailureMode) (at time.Time, err error) {
	if err := mode.check(); err != nil {
		return at, err
	}
	t, err := l.Config.target(target)
	if err != nil {
		return at, err
	}
	return l.changeFailures(func(f failures) error {
		if had := f[t.name]; had != "" && had != mode {
			return fmt.Errorf("%s has failed already (%s): heal it before it fails in another way", t.name, had)
		}
		f[t.name] = mode
		return nil
	})
}

// Heal undoes Fail for the named links and nodes, or for all if none is named. It
// returns the time just before the first link came back. It restores the routes
// of the lab's plan that the kernel deleted, unless another program, such as a
// switch agent, has routes to these prefixes over the same port.
func (l *Lab) Heal(targets ...string) (at time.Time, err error) {
	return l.changeFailures(func(f failures) error {
		if len(targets) == 0 {
			clear(f)
		}
		for _, name := range targets {
			t, err := l.Config.target(name)
			if err != nil {
				return err
			}
			if f[t.name] == "" {
				return fmt.Errorf("%s has not failed; %s", t.name, f)
			}
			delete(f, t.name)
		}
		return nil
	})
}

// Observe makes Fail and Heal call f for every link that they change, with the times just
// before and after the kernel did so. f must be quick and must not call the Lab.
func (l *Lab) Observe(f func(link topology.LinkID, from, to time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observe = f
}

func (f failures) String() string {
	if len(f) == 0 {
		return "nothing has"
	}
	return fmt.Sprintf("what has: %v", slices.Sorted(maps.Keys(f)))
}

// Failures returns what has failed and how, by the names of links and nodes.
func (l *Lab) Failures() (map[string]FailureMode, error) {
	s, err := readState(l.Config.Name)
	if err != nil || s == nil {
		return nil, err
	}
	return s.Failures, nil
}

// stateWait bounds the wait for other processes that change the lab.
const stateWait = 5 * time.Second

// changeFailures lets change edit what has failed, and makes it so. A failure is
// written down before it is made, and a repair after it is made. So a process
// that dies in between leaves nothing that Heal does not know of.
func (l *Lab) changeFailures(change func(failures) error) (at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil { // of others' labs
		lock, err := lockLabWithin(l.Config.Name, stateWait)
		if err != nil {
			return at, err
		}
		defer lock.release()
	}
	state, err := readState(l.Config.Name)
	if err != nil {
		return at, err
	}
	if state == nil || !state.Ready {
		return at, fmt.Errorf("lab %s is not up: weft lab up --name %s", l.Config.Name, l.Config.Name)
	}
	before, after := state.Failures, failures{}
	maps.Copy(after, state.Failures)
	if err := change(after); err != nil {
		return at, err
	}
	steps, err := l.Config.transitions(before, after)
	if err != nil {
		return at, err
	}
	prepared := make([]func() error, len(steps))
	for i, step := range steps {
		if prepared[i], err = l.prepare(step); err != nil {
			return at, fmt.Errorf("link %s: %w", l.Config.plant().LinkName(step.link), err)
		}
	}
	state.Failures = failures{}
	maps.Copy(state.Failures, before)
	maps.Copy(state.Failures, after)
	if err := writeState(l.Config.Name, *state); err != nil {
		return at, err
	}
	at = time.Now()
	for i, do := range prepared {
		from := time.Now()
		if err := do(); err != nil {
			return at, fmt.Errorf("link %s: %w", l.Config.plant().LinkName(steps[i].link), err)
		}
		if l.observe != nil {
			l.observe(steps[i].link, from, time.Now())
		}
	}
	state.Failures = after
	return at, errors.Join(writeState(l.Config.Name, *state), l.settleBalance(steps, after))
}

func lockLabWithin(name string, wait time.Duration) (*labLock, error) {
	for end := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		lock, err := lockLab(name)
		if err == nil || !errors.As(err, new(inUse)) || time.Now().After(end) {
			return lock, err
		}
	}
}

// prepare does what can be done before the moment of a transition, and returns
// what happens then.
func (l *Lab) prepare(t transition) (func() error, error) {
	k := l.Config.plant().Link(t.link)
	lower, err := l.end(t.link, k.A)
	if err != nil {
		return nil, err
	}
	upper, err := l.end(t.link, k.B)
	if err != nil {
		return nil, err
	}
	var steps []func() error
	switch {
	case t.to.silent():
		prog, err := l.silencer(t.to)
		if err != nil {
			return nil, err
		}
		steps = append(steps,
			func() error {
				return l.Do(k.A, func() error { return kernel.SilentFilter.Attach(lower.node.Handle, lower.link, prog) })
			},
			func() error {
				return l.Do(k.B, func() error { return kernel.SilentFilter.Attach(upper.node.Handle, upper.link, prog) })
			})
	case t.to == FailLoud:
		steps = append(steps, func() error { return upper.node.LinkSetDown(upper.link) })
	}
	if t.from == FailLoud {
		steps = append(steps, func() error { return l.bringBack(upper) })
	}
	if t.from.silent() && !t.to.silent() {
		steps = append(steps,
			func() error {
				return l.Do(k.A, func() error { return kernel.SilentFilter.Detach(lower.node.Handle, lower.link) })
			},
			func() error {
				return l.Do(k.B, func() error { return kernel.SilentFilter.Detach(upper.node.Handle, upper.link) })
			})
	}
	return func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return kernel.Explain(err)
			}
		}
		return nil
	}, nil
}
