package switchd

import (
	"slices"
	"sync"
	"time"

	"weft/fabric"
	"weft/topology"
)

// repair keeps the switch's routes as the newest snapshot has them, by a
// goroutine of its own: the kernel may take its time. What it has not come to yet
// is one snapshot, the newest.
type repair struct {
	config  Config
	missing []string // ports without a device
	routes  *fabric.Routes
	kick    chan struct{} // buffers one: something is to be done
	ended   chan struct{}

	mu     sync.Mutex
	closed bool
	wanted *topology.Topology
	reread bool // the kernel may have dropped routes
	stats  RouteStats
}

// retryAfter is when what has failed is tried again.
const retryAfter = time.Second

// startRepair binds to the calling thread's network namespace.
func startRepair(c Config, missing []string) (*repair, error) {
	r := &repair{config: c, missing: missing, wanted: c.Topology, kick: make(chan struct{}, 1), ended: make(chan struct{})}
	plan, err := r.plan(c.Topology)
	if err != nil {
		return nil, err
	}
	if r.routes, err = fabric.OpenRoutes(plan); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// plan leaves out the ports that are not there: no route may name them.
func (r *repair) plan(t *topology.Topology) (fabric.NodePlan, error) {
	if len(r.missing) > 0 {
		var dead []topology.LinkID
		whole, err := r.config.plan(t)
		if err != nil {
			return whole, err
		}
		for _, p := range t.Ports(r.config.Self) {
			if slices.Contains(r.missing, whole.Ports[p.Index].Name) {
				dead = append(dead, p.Link)
			}
		}
		t = t.Without(dead...)
	}
	p, err := r.config.plan(t)
	p.Ports = slices.DeleteFunc(p.Ports, func(port fabric.Port) bool { return slices.Contains(r.missing, port.Name) })
	return p, err
}

func (r *repair) set(t *topology.Topology) {
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
	var retry <-chan time.Time
	for {
		select {
		case <-r.kick:
		case <-retry:
			r.mu.Lock()
			r.reread = true // nobody knows how far it came
			r.mu.Unlock()
		}
		if r.isClosed() {
			return
		}
		retry = nil
		if r.update() != nil {
			retry = time.After(retryAfter)
		}
	}
}

func (r *repair) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// update makes the routes those of the newest snapshot.
func (r *repair) update() error {
	r.mu.Lock()
	t, reread := r.wanted, r.reread
	r.reread = false
	r.mu.Unlock()
	start := time.Now()
	n, err := r.apply(t, reread)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Changed += uint64(n)
	r.stats.LastMS = float64(time.Since(start).Microseconds()) / 1000
	r.stats.LastError = ""
	if err != nil {
		r.stats.Errors++
		r.stats.LastError = err.Error()
	}
	return err
}

func (r *repair) apply(t *topology.Topology, reread bool) (changed int, err error) {
	plan, err := r.plan(t)
	if err != nil {
		return 0, err
	}
	if changed, err = r.routes.Set(plan); err != nil || !reread {
		return changed, err
	}
	n, err := r.routes.Resync()
	return changed + n, err
}

func (r *repair) status() *RouteStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	return &s
}

func (r *repair) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wake()
	<-r.ended
	r.routes.Close()
}
