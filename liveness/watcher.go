package liveness

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"weft/internal/bucket"
	"weft/internal/timerq"
	"weft/topology"
)

// Watcher watches the paths of one host. See the package documentation.
type Watcher struct {
	config  Config
	base    *topology.Topology
	current *topology.Topology
	rng     *rand.ChaCha8
	now     time.Duration // running time, see stalls

	near   group // boomerangs
	groups map[netip.Addr]*group
	order  []*group // those of the map, oldest first
	room   time.Duration
	kinds  []kind

	schedule timerq.Queue[*path]
	nearN    int // boomerangs and other paths that are scheduled
	farN     int
	budget   budget
	bulk     bucket.Bucket // of full-size probes, in bytes
	out      []Probe       // to be sent
	awaited  awaited

	dirty    bool      // suspects is to be computed anew
	suspects []Suspect // links
	alone    []Suspect // paths to single destinations
	// contested says that several destinations accuse a link, so the answers of others
	// matter.
	contested bool
	marks     marks // empty between uses
	stats     Stats

	proof   proof
	sizes   []int         // of full-size probes, outer header included, the longest first
	traffic time.Duration // when there was any, latest
	rest    rest
	stalls  stalls
	slows   slows
}

// kind is the pairs of hosts that use the same bouncing switches.
type kind struct {
	set topology.PathSet // of one of the pairs
	ups []int32          // the boomerang of each path; kinds may have some in common

	number int // of the kind
}

// New returns a Watcher. It starts with its first Tick.
func New(c Config) (*Watcher, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], c.Seed)
	copy(seed[8:], "weft/liveness")
	w := &Watcher{config: c, rng: rand.NewChaCha8(seed)}
	w.schedule.Moved = func(p *path, place int32) { p.place = place }
	w.awaited.init(&w.config)
	w.budget.init(c.Budget)
	w.sizes = c.sizes()
	w.bulk = bucket.New(c.Budget*bytesPerProbe, 100*time.Millisecond).AtLeast(2 * c.MTU)
	w.slows.bucket = probes(c.Budget * slowShare)
	w.begin(c.Topology)
	return w, nil
}

// begin forgets everything and watches a fabric.
func (w *Watcher) begin(base *topology.Topology) {
	for _, g := range w.order {
		g.gone = true
	}
	w.config.Topology, w.base, w.current = base, base, base
	w.groups = make(map[netip.Addr]*group)
	w.order, w.kinds, w.suspects, w.alone, w.contested = nil, nil, nil, nil, false
	w.schedule.Clear()
	w.nearN, w.farN = 0, 0
	w.marks = make(marks, (base.NumLinks()+63)/64)
	w.awaited.forget()
	w.slows.begin()
	self, own, _ := base.HostAt(w.config.Address)
	w.near = group{dst: self, rack: own, address: w.config.Address}
	w.addKind(base.Paths(w.config.Self, base.EdgeOf(0)))
	w.addKind(base.Paths(w.config.Self, base.EdgeOf(topology.NodeID(base.NumHosts()-1))))
	for edge := range base.Racks() {
		w.addKind(base.Paths(w.config.Self, edge))
	}
	w.near.init(w.now)
	for i := range w.near.paths {
		w.near.paths[i].up = int32(i)
		w.near.paths[i].down = w.downHere(&w.near.paths[i])
	}
	w.beginProof()
	w.scheduleGroup(&w.near)
	w.dirty = true
}

// addKind adds a set of paths, if it is not there yet, and those of its boomerangs that no
// other kind has.
func (w *Watcher) addKind(s topology.PathSet) {
	if _, known := w.kindOf(s); known || s.Direct() {
		return
	}
	k := kind{set: s, ups: make([]int32, s.Count()), number: len(w.kinds)}
	for i := range k.ups {
		links, _ := s.Halves(i)
		p := path{index: int32(i), via: s.Addr(i), from: int16(s.From(i)), tally: new(Tally)}
		p.setHalf(links)
		up := slices.IndexFunc(w.near.paths, func(q path) bool {
			return q.via == p.via && q.from == p.from && q.high == p.high && q.low == p.low
		})
		if up < 0 {
			up = len(w.near.paths)
			w.near.paths = append(w.near.paths, p)
		}
		k.ups[i] = int32(up)
	}
	w.kinds = append(w.kinds, k)
}

func (w *Watcher) kindOf(s topology.PathSet) (kind, bool) {
	if s.Direct() {
		return kind{}, false
	}
	for _, k := range w.kinds {
		if k.set.Like(s) {
			return k, true
		}
	}
	return kind{}, false
}

// SetTopology replaces the baseline, which link-state updates change. Links that are down
// in base are down and not probed. Links that are up again are used at once, unless the
// host has evidence against them; then they are used when probes refute that evidence. If
// base is another fabric (another String), everything is forgotten, unless both are data
// (topology.FromGraph): then what is known of paths by the same bouncing switches holds, and
// proves the carrier towards racks that have one of them. Self must be a host of base.
func (w *Watcher) SetTopology(base *topology.Topology, now time.Duration) error {
	w.at(now)
	changed, same := w.base.Diff(base)
	if !same {
		c := w.config
		c.Topology = base
		if _, err := c.withDefaults(); err != nil {
			return fmt.Errorf("another topology: %w", err)
		}
		known, computed := w.remember(), w.base.Computed() || base.Computed()
		w.begin(base)
		if !computed {
			w.inherit(known)
		}
		return nil
	}
	if len(changed) == 0 {
		return nil
	}
	w.base, w.dirty = base, true
	w.lookAgain(w.now)
	w.rebase(&w.near, changed)
	for _, g := range w.order {
		w.rebase(g, changed)
	}
	return nil
}

// rebase reads the baseline again for a group if one of the changed links is on its
// paths.
func (w *Watcher) rebase(g *group, changed []topology.LinkID) {
	if g != &w.near && !concerns(w.base, changed, w.near.rack, g.rack) {
		return
	}
	g.farDown = 0
	up := false
	for i := range g.paths {
		p := &g.paths[i]
		down := w.downHere(&w.near.paths[p.up])
		if g != &w.near && w.downHere(p) {
			down = true
			g.farDown++
		}
		if down == p.down {
			continue
		}
		p.down = down
		if down {
			w.unschedule(p)
			p.misses, p.convicts, p.goods, p.alert = 0, 0, 0, 0
			continue
		}
		up = true
		// Up again: its first probes follow soon.
		p.history, p.recorded = 0, 0
		p.alert = w.now + w.config.silence()
		if p.cause != fine || !w.unprobed(g) && !g.parked {
			w.wake(p, w.jitter(w.config.urgent()))
		}
	}
	switch {
	case g.mute && up:
		w.hasten(g)
	case g.mute:
		w.retryAny(g)
	}
}

func concerns(t *topology.Topology, changed []topology.LinkID, src, dst topology.NodeID) bool {
	for _, l := range changed {
		if t.OnPaths(l, src, dst) {
			return true
		}
	}
	return false
}

// downHere reports whether the baseline has a path's own half down.
func (w *Watcher) downHere(p *path) bool {
	return !w.base.Live(p.high) || p.low != none && !w.base.Live(p.low)
}

// Topology returns the baseline without the suspected links. Paths that only their
// destination accuses are avoided (see topology.Avoided). The pointer changes only when
// links or avoided paths change.
func (w *Watcher) Topology() *topology.Topology {
	if w.dirty {
		w.lookAgain(w.now) // a path may be fine again
	}
	w.prove()
	if w.dirty {
		w.dirty = false
		w.infer()
		w.proof.stale = true
	}
	if w.proof.stale {
		w.proof.stale = false
		w.carry()
	}
	return w.current
}

// jitter returns a time that differs from d by up to a quarter.
func (w *Watcher) jitter(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - d/4 + time.Duration(w.rng.Uint64()%uint64(d/2+1))
}

func (w *Watcher) random(n int) int { return int(w.rng.Uint64() % uint64(n)) }
