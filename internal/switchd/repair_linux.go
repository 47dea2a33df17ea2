package switchd

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weft/fabric"
	"weft/internal/event"
	"weft/internal/kernel"
	"weft/internal/service"
	"weft/topology"
)

// repair keeps the switch as it should be: its routes as the newest snapshot has them, and
// the rest as it was configured. It owns all that and has a goroutine of its own, because
// the kernel may take its time. At most one snapshot waits for it, the newest.
type repair struct {
	config Config
	routes *fabric.Routes    // nil: they are not the agent's
	leaf   *fabric.LeafPaths // nil without Config.Leaf
	home   kernel.Home
	watch  *fabric.Watch
	kick   chan struct{} // buffers one: something is to be done
	ended  chan struct{}

	started time.Time

	mu     sync.Mutex
	closed bool
	wanted *topology.Topology
	reread bool // the kernel may have dropped routes
	stats  RouteStats
	mended Repairs
}

const (
	// retryAfter is when what has failed is tried again, and all is compared whether
	// the kernel has told of a change or not.
	retryAfter = time.Second
	// glanceEvery is how often is looked at what the kernel does not tell of.
	glanceEvery = 50 * time.Millisecond
	// settle bounds how often all is compared while the kernel tells of one change
	// after the other.
	settle = 20 * time.Millisecond
)

// startRepair binds to the calling thread's network namespace.
func startRepair(c Config) (*repair, error) {
	r := &repair{config: c, wanted: c.Topology, kick: make(chan struct{}, 1), ended: make(chan struct{}), started: time.Now()}
	if err := r.open(); err != nil {
		r.release()
		return nil, err
	}
	go r.run()
	return r, nil
}

func (r *repair) open() error {
	c := &r.config
	var err error
	if r.home, err = kernel.OpenHome(); err != nil {
		return err
	}
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	if c.Routes || c.fixed {
		if r.routes, err = fabric.OpenRoutes(plan); err != nil {
			return err
		}
	}
	if c.Leaf && c.Topology.Node(c.Self).Layer == topology.LayerEdge {
		var names []string
		for _, p := range plan.Ports {
			names = append(names, p.Name)
		}
		if r.leaf, err = fabric.OpenLeafPaths(names, fabric.LeafConfig{Topology: c.Topology, Self: c.Self}); err != nil {
			return err
		}
		c.owned = append(slices.Clip(c.owned), r.leaf)
	}
	r.watch, err = fabric.WatchSwitch()
	return err
}

func (r *repair) release() {
	r.home.Close()
	if r.watch != nil {
		r.watch.Close()
	}
	if r.leaf != nil {
		r.leaf.Close()
	}
	if r.routes != nil {
		r.routes.Close()
	}
}

func (r *repair) set(t *topology.Topology) {
	if !r.config.Routes && len(r.followers()) == 0 {
		return
	}
	r.mu.Lock()
	r.wanted = t
	r.stats.Updates++
	r.mu.Unlock()
	r.wake()
}

// resync has the kernel's routes read again.
func (r *repair) resync() {
	r.mu.Lock()
	r.reread = true
	r.mu.Unlock()
	r.wake()
}

func (r *repair) wake() {
	select {
	case r.kick <- struct{}{}:
	default: // it knows already
	}
}

func (r *repair) run() {
	defer close(r.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked time.Time
	dirty := true
	for {
		idle := false
		select {
		case <-r.kick:
			if r.isClosed() {
				return
			}
			if r.takeReread() {
				dirty = true
			} else {
				r.there(func() { r.update() })
			}
		case <-r.watch.Changed():
			dirty = true
		case <-timer.C:
			idle = !dirty
		}
		since := time.Since(looked)
		switch {
		case dirty && since >= settle, since >= retryAfter:
			r.there(r.look)
			dirty, looked, since = false, time.Now(), 0
		case idle:
			r.there(r.glance)
		}
		switch {
		case dirty:
			timer.Reset(settle - since)
		case len(r.config.owned) > 0:
			timer.Reset(glanceEvery)
		default: // of routes the kernel tells
			timer.Reset(retryAfter - since)
		}
	}
}

// there runs f in the switch's network namespace.
func (r *repair) there(f func()) {
	if err := r.home.Do(func() error { f(); return nil }); err != nil {
		r.complain(err)
	}
}

func (r *repair) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *repair) takeReread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.reread
	r.reread = false
	return was
}

// follower is an owned part that follows the newest snapshot, as routes do.
type follower interface {
	SetTopology(*topology.Topology) error
}

func (r *repair) followers() (list []follower) {
	for _, o := range r.config.owned {
		if f, ok := o.(follower); ok {
			list = append(list, f)
		}
	}
	return list
}

// update makes the routes, and what leads by paths, those of the newest snapshot. Where the
// agent keeps no routes, they stay those of the baseline.
func (r *repair) update() error {
	r.mu.Lock()
	t := r.wanted
	r.mu.Unlock()
	var errs []error
	for _, f := range r.followers() {
		errs = append(errs, f.SetTopology(t))
	}
	if r.routes != nil {
		errs = append(errs, r.updateRoutes(t))
	}
	return errors.Join(errs...)
}

func (r *repair) updateRoutes(t *topology.Topology) error {
	if !r.config.Routes {
		t = r.config.Topology
	}
	start := time.Now()
	plan, err := r.config.plan(t)
	if err == nil && r.config.group != nil {
		err = r.config.group(plan)
	}
	n := 0
	if err == nil {
		n, err = r.routes.Set(plan)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.LastMS = float64(time.Since(start).Microseconds()) / 1000
	r.count(n, err)
	return err
}

// count notes what was done to the routes, with r.mu held.
func (r *repair) count(n int, err error) {
	r.stats.Changed += uint64(n)
	r.stats.LastError = ""
	if err != nil {
		r.stats.Errors++
		r.stats.LastError = err.Error()
	}
}

// look compares all with the kernel, mends what differs, and tells of it.
func (r *repair) look() {
	var errs []error
	for _, o := range r.config.owned { // devices, before there can be routes over them
		did, err := o.Repair()
		r.tell(did...)
		errs = append(errs, err)
	}
	if err := r.update(); err != nil {
		errs = append(errs, err)
	} else if r.routes != nil {
		n, err := r.routes.Resync()
		if n > 0 {
			r.tell(fmt.Sprintf("put back %d routes that were missing or others", n))
		}
		r.mu.Lock()
		r.count(n, err)
		r.mu.Unlock()
		errs = append(errs, err)
	}
	errs = append(errs, r.step())
	r.complain(errors.Join(errs...))
}

// glance mends what the kernel does not tell of, and does what is due.
func (r *repair) glance() {
	for _, o := range r.config.owned {
		did, err := o.RepairSettings()
		r.tell(did...)
		if err != nil {
			r.complain(err)
		}
	}
	if err := r.step(); err != nil {
		r.complain(err)
	}
}

// step does what is due.
func (r *repair) step() error {
	if r.config.step == nil {
		return nil
	}
	return r.config.step(time.Since(r.started))
}

// tell says what was mended.
func (r *repair) tell(did ...string) {
	r.mu.Lock()
	r.mended.Add(did...)
	r.mu.Unlock()
	for _, what := range did {
		r.config.Log.Info(event.Repaired, "repaired: "+what, "what", what)
	}
}

// complain says what is wrong, once, and when it no longer is.
func (r *repair) complain(err error) {
	why := ""
	if err != nil {
		why = service.OneLine(err.Error())
	}
	r.mu.Lock()
	was := r.mended.Trouble
	r.mended.Trouble = why
	r.mu.Unlock()
	switch {
	case why == was:
	case why == "":
		r.config.Log.Info(event.Recovered, "all is right again, after: "+was, "after", was)
	default:
		r.config.Log.Warn(event.Trouble, "trouble: "+why, "why", why)
	}
}

// status is nil where the routes are not the agent's.
func (r *repair) status() *RouteStats {
	if !r.config.Routes {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	return &s
}

func (r *repair) repairs() *Repairs {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Repairs{r.mended.Copy(), r.mended.Trouble}
}

func (r *repair) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wake()
	<-r.ended
	r.release()
}
