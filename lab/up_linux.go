package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/frr"
	"weft/internal/kernel"
	"weft/topology"
)

// Up builds a lab that stays until Down. If the lab exists, Up mends what is not as it was
// built: see Lab.Repaired. It first clears away a lab that a crash left half-built. If ctx
// ends before the lab is built, nothing is left of it. It needs CAP_SYS_ADMIN and
// CAP_NET_ADMIN.
func Up(ctx context.Context, cfg Config) (*Lab, error) {
	return up(ctx, cfg, false)
}

// Hold builds a lab that belongs to this process. No other process can change it,
// and Close takes it down. If the process dies first, the next Up, Hold or Down
// of that name clears the lab away.
func Hold(ctx context.Context, cfg Config) (*Lab, error) {
	return up(ctx, cfg, true)
}

func up(ctx context.Context, cfg Config, hold bool) (*Lab, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if err := requireLabCapabilities(); err != nil {
		return nil, err
	}
	if cfg.Graph != nil {
		if err := frr.Available(); err != nil {
			return nil, fmt.Errorf("lab %s: %w", cfg.Name, err)
		}
	}
	lock, err := lockLab(cfg.Name)
	if err != nil {
		return nil, err
	}
	l, err := upLocked(ctx, cfg, hold)
	if err != nil || !hold {
		lock.release()
		return l, err
	}
	l.lock = lock
	if fabric.Classifies(cfg.Balance) {
		if l.classifiers, err = l.Classify(); err != nil {
			return nil, errors.Join(fmt.Errorf("build lab %s: %w", cfg.Name, err), l.Close())
		}
	}
	return l, nil
}

func upLocked(ctx context.Context, cfg Config, ephemeral bool) (*Lab, error) {
	state, err := readState(cfg.Name)
	if err != nil {
		return nil, err
	}
	// The lock is ours: the owner of an ephemeral lab has died.
	if state != nil && state.Ready && !state.Ephemeral {
		same := state.labSettings == cfg.settings()
		switch {
		case same && !ephemeral:
			l := newLab(cfg, state)
			l.Reused = true
			if l.Repaired, err = repairLab(ctx, cfg, state); err != nil {
				return nil, err
			}
			l.awaitLinks(ctx)
			if err := l.RefreshBalance(); err != nil {
				l.Close()
				return nil, err
			}
			return l, nil
		case isWhole(cfg.Name, state):
			return nil, fmt.Errorf("lab %s is in use (%s): weft lab down --name %s or choose another --name", cfg.Name, state.labSettings, cfg.Name)
		}
	}
	if _, err := tearDown(cfg.Name); err != nil {
		return nil, err
	}
	mine := labState{labSettings: cfg.settings(), Ephemeral: ephemeral}
	if err := writeState(cfg.Name, mine); err != nil {
		return nil, err
	}
	mine.Notes, err = build(ctx, cfg)
	if fabric.Classifies(cfg.Balance) && !ephemeral {
		mine.Notes = append(mine.Notes, "flows are classified while weft lab agents runs; without it the two-level tables choose")
	}
	if err == nil {
		mine.Ready, mine.Instance = true, rand.Text()
		err = writeState(cfg.Name, mine)
	}
	if err != nil {
		if _, err2 := tearDown(cfg.Name); err2 != nil {
			err = fmt.Errorf("%w (and clearing up: %w)", err, err2)
		}
		return nil, err
	}
	l := newLab(cfg, &mine)
	l.awaitLinks(ctx)
	if err := l.RefreshBalance(); err != nil {
		l.Close()
		_, err2 := tearDown(cfg.Name)
		return nil, errors.Join(fmt.Errorf("build lab %s: %w", cfg.Name, err), err2)
	}
	return l, nil
}

// isWhole reports whether all namespaces of a lab are there.
func isWhole(name string, s *labState) bool {
	cfg, err := s.config(name)
	if err != nil {
		return false
	}
	names, err := kernel.Namespaces(labPrefix(name))
	if err != nil {
		return false
	}
	for n := range cfg.nodes() {
		if _, ok := slices.BinarySearch(names, cfg.namespace(n.Name)); !ok {
			return false
		}
	}
	return true
}

func requireLabCapabilities() error {
	if err := kernel.RequireCapability(unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"); err != nil {
		return fmt.Errorf("network namespaces: %w", err)
	}
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return fmt.Errorf("links and routes: %w", err)
	}
	return nil
}

// builders is how many nodes are built at a time: one lock of the kernel
// serialises most of the work.
const builders = 2

// build makes the namespaces, then the links between them, then configures
// each node. The switches of a Graph then find their routes.
func build(ctx context.Context, cfg Config) (notes []string, err error) {
	if err := kernel.PrepareNetnsDir(); err != nil {
		return nil, err
	}
	b := builder{cfg: cfg}
	steps := []func(topology.Node) error{b.create, b.wire, b.configure}
	if cfg.Graph != nil {
		steps = append(steps, b.startRouting)
	}
	b.total = len(steps) * cfg.numNodes()
	for _, step := range steps {
		if err := b.each(ctx, step); err != nil {
			return nil, fmt.Errorf("build lab %s: %w", cfg.Name, err)
		}
	}
	if err := b.awaitRoutes(ctx, nil); err != nil {
		return nil, fmt.Errorf("build lab %s: %w", cfg.Name, err)
	}
	return b.notes, nil
}

type builder struct {
	cfg   Config
	total int

	mu    sync.Mutex
	done  int
	notes []string
}

// each runs a step for all nodes, and stops at the first error.
func (b *builder) each(ctx context.Context, step func(topology.Node) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	nodes := make(chan topology.Node)
	var wg sync.WaitGroup
	for range builders {
		wg.Go(func() {
			for n := range nodes {
				if err := step(n); err != nil {
					cancel(fmt.Errorf("%s: %w", n.Name, err))
					return
				}
				b.progress()
			}
		})
	}
	for n := range b.cfg.nodes() {
		if ctx.Err() != nil {
			break
		}
		select {
		case nodes <- n:
		case <-ctx.Done():
		}
	}
	close(nodes)
	wg.Wait()
	return context.Cause(ctx)
}

func (b *builder) progress() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	if b.cfg.Progress != nil {
		b.cfg.Progress(b.done, b.total)
	}
}

// note keeps what nodes have to say, once however many say it.
func (b *builder) note(notes ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range notes {
		if !slices.Contains(b.notes, n) {
			b.notes = append(b.notes, n)
		}
	}
}

// CanBuild returns nil if this process may build a lab, otherwise the reason why not.
func CanBuild() error {
	if err := kernel.RequireCapability(unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"); err != nil {
		return err
	}
	return kernel.RequireCapability(unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
}
