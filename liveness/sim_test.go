package liveness

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/timerq"
	"weft/topology"
)

// side is one direction of a link.
type side struct {
	link topology.LinkID
	up   bool
}

// fault is what a side does to packets.
type fault struct {
	loss  float64
	delay time.Duration
	mtu   int // longer packets vanish; 0: none
}

// world is a fabric that loses and delays packets, and hosts on it that have
// Watchers, in virtual time. It knows nothing of what the package under test
// concludes, only where packets go (topology).
type world struct {
	t       testing.TB
	topo    *topology.Topology
	seed    uint64
	rng     *rand.Rand
	now     time.Duration
	events  timerq.Queue[func()]
	faults  map[side]fault
	all     fault                                            // of every side besides
	routes  map[way]route                                    // those found
	mute    map[topology.NodeID]bool                         // plain hosts: they answer no probes
	old     map[topology.NodeID]bool                         // hosts that do not know of padding
	deaf    map[netip.Addr]bool                              // bouncing addresses that do not decapsulate
	ignores map[topology.NodeID]func(path int) bool          // requests by these paths they do not answer
	hosts   map[topology.NodeID]*simHost                     // those with a Watcher
	list    []*simHost                                       // in order
	check   func(h *simHost, was *topology.Topology)         // after each change of a host's Topology
	sent    func(h *simHost, p *Probe)                       // with each probe, if not nil
	queues  map[side]*queue                                  // of links with a rate; nil: there are none
	lags    map[topology.NodeID]func(path int) time.Duration // how late they answer requests
}

type simHost struct {
	id      topology.NodeID
	w       *Watcher
	topo    *topology.Topology // as last seen
	changes int
	next    time.Duration // when it is next due; what else is among the events is void
	stopped bool          // its process does not run
	waiting [][]byte      // answers that came meanwhile
}

func newWorld(t testing.TB, spec string, seed uint64) *world {
	t.Helper()
	topo, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return worldOf(t, topo, seed)
}

func worldOf(t testing.TB, topo *topology.Topology, seed uint64) *world {
	return &world{
		t: t, topo: topo, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)),
		faults: make(map[side]fault), routes: make(map[way]route), mute: make(map[topology.NodeID]bool),
		old: make(map[topology.NodeID]bool), deaf: make(map[netip.Addr]bool),
		hosts: make(map[topology.NodeID]*simHost),
	}
}

func (s *world) at(t time.Duration, f func()) { s.events.Add(max(t, s.now), f) }

func (s *world) after(d time.Duration, f func()) { s.at(s.now+d, f) }

// run lets time pass until t.
func (s *world) run(t time.Duration) {
	for s.events.Len() > 0 && s.events.Next() <= t {
		s.now = s.events.Next()
		s.events.Pop()()
	}
	s.now = t
}

// watch puts a Watcher on a host.
func (s *world) watch(id topology.NodeID, c Config) *simHost {
	s.t.Helper()
	c.Topology, c.Self = s.topo, id
	if c.Seed == 0 {
		c.Seed = s.rng.Uint64()
	}
	w, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	h := &simHost{id: id, w: w, topo: w.Topology(), next: never}
	s.hosts[id] = h
	s.list = append(s.list, h)
	s.settle(h)
	return h
}

// settle does what a host does after it has called its Watcher.
func (s *world) settle(h *simHost) {
	if t := h.w.Topology(); t != h.topo {
		was := h.topo
		h.topo = t
		h.changes++
		if s.check != nil {
			s.check(h, was)
		}
	}
	if h.stopped {
		return
	}
	if next := max(h.w.Next(), s.now); next != never && (h.next > next || h.next < s.now) {
		h.next = next
		s.at(next, func() {
			if h.next != next {
				return // an earlier one has taken its place
			}
			h.next = never
			if h.stopped {
				return
			}
			h.w.Tick(s.now)
			h.w.Probes(func(p *Probe) { s.probe(h, *p) })
			s.settle(h)
		})
	}
}

// route is the way of a packet: the sides of links from which it comes.
type route []side

// way tells what a route depends on: the hosts at its ends, of which the second is
// where it turns if that is a bouncing switch, and the path's number.
type way struct {
	from, to topology.NodeID
	path     int
	via      netip.Addr
}

// route is a path's, whichever links are down.
func (s *world) route(from, to topology.NodeID, path int) route {
	k := way{from: from, to: to, path: path}
	r, known := s.routes[k]
	if !known {
		p := s.topo.Whole().Paths(from, to).Path(path)
		r = s.sides(p.Hops, p.Links)
		s.routes[k] = r
	}
	return r
}

func (s *world) sides(hops []topology.NodeID, links []topology.LinkID) (r route) {
	for i, l := range links {
		r = append(r, side{l, s.topo.Link(l).A == hops[i]})
	}
	return r
}

// bounced is a boomerang's, to a bouncing address and back.
func (s *world) bounced(id topology.NodeID, uplink int, via netip.Addr) route {
	k := way{from: id, to: -1, path: uplink, via: via}
	r, known := s.routes[k]
	if known {
		return r
	}
	for dst := range s.ends() {
		set := s.topo.Whole().Paths(id, dst)
		if set.Direct() {
			continue
		}
		for n := range set.Count() {
			if set.Addr(n) != via || set.From(n) != uplink {
				continue
			}
			p := set.Path(n)
			half := len(p.Links) / 2
			up := s.sides(p.Hops, p.Links[:half])
			r = slices.Clone(up)
			for _, k := range slices.Backward(up) {
				r = append(r, side{k.link, !k.up})
			}
			s.routes[k] = r
			return r
		}
	}
	s.t.Fatalf("nobody bounces %v's packets at %v", id, via)
	return nil
}

// probe sends what a Watcher wants sent, bytes and all.
func (s *world) probe(h *simHost, p Probe) {
	if s.sent != nil {
		s.sent(h, &p)
	}
	packet := p.Append(nil)
	if len(packet) != p.Len() {
		s.t.Fatalf("%d bytes of %d", len(packet), p.Len())
	}
	if s.deaf[p.Via] {
		return
	}
	size := len(packet) + encap.CarrierIPIP.OverheadFrom(p.Via)
	if p.Kind() == encap.Boomerang {
		s.travel(s.bounced(h.id, p.From, p.Via), size, asData(packet), func() { s.answer(h, packet) }, nil)
		return
	}
	dst := s.end(p.Dst)
	if k := (way{h.id, dst, p.Path, p.Via}); s.routes[k] == nil {
		if s.topo.Whole().Paths(h.id, dst).Addr(p.Path) != p.Via {
			s.t.Fatalf("path %d to %d does not bounce at %v", p.Path, dst, p.Via)
		}
		s.routes[k] = route{} // it has been looked at
	}
	ignores := s.ignores[dst]
	s.travel(s.route(h.id, dst, p.Path), size, asData(packet), func() {
		if s.mute[dst] || s.old[dst] && len(packet) > encap.ProbeLenFrom(p.Dst) || ignores != nil && ignores(p.Path) {
			return
		}
		path, err := encap.ReplyProbe(packet)
		if err != nil || int(path) != p.Path {
			s.t.Fatalf("request by path %d: reply by %d, %v", p.Path, path, err)
		}
		back := func() {
			s.travel(s.back(dst, h.id, int(path)), size, asData(packet), func() { s.answer(h, packet) }, nil)
		}
		if lag := s.lags[dst]; lag != nil {
			s.after(lag(p.Path), back)
			return
		}
		back()
	}, nil)
}

func (s *world) answer(h *simHost, packet []byte) {
	if h.stopped {
		h.waiting = append(h.waiting, packet)
		return
	}
	h.w.Answer(packet, s.now)
	s.settle(h)
}

// carry sends a packet of a size along a route. The outer header is counted all the
// way.
func (s *world) carry(r route, size int) (time.Duration, bool) {
	var d time.Duration
	for _, k := range r {
		f := s.faults[k]
		if f.mtu > 0 && size > f.mtu || s.rng.Float64() < f.loss || s.all.loss > 0 && s.rng.Float64() < s.all.loss {
			return 0, false
		}
		d += 20*time.Microsecond + time.Duration(s.rng.IntN(10_000)) + f.delay + s.all.delay
	}
	return d, true
}

// talk has a host send packets to another, evenly over the paths that its
// Topology has live, from now on. Lost ones are sent again, uncounted, after a
// round trip or a timeout.
func (s *world) talk(h *simHost, dst topology.NodeID, perSecond float64) {
	gap := time.Duration(float64(time.Second) / perSecond)
	next := 0
	var send func()
	send = func() {
		s.after(gap/2+time.Duration(s.rng.Int64N(int64(gap))), send)
		h.w.Active(s.topo.Node(dst).Addr, s.topo.Node(dst).Addr, s.now)
		set := h.topo.Paths(h.id, dst)
		if len(set.Live) > 0 {
			path := set.Live[next%len(set.Live)]
			next++
			h.w.Sent(s.topo.Node(dst).Addr, path, 1)
			if _, ok := s.carry(s.route(h.id, dst, path), 100); !ok {
				s.after(time.Duration(1+s.rng.IntN(20))*time.Millisecond, func() {
					h.w.Lost(s.topo.Node(dst).Addr, path, 1, s.now)
					s.settle(h)
				})
			}
		}
		s.settle(h)
	}
	s.after(time.Duration(s.rng.Int64N(int64(gap))), send)
}

// keepActive has a host believe in traffic to another, of which nothing else is
// told.
func (s *world) keepActive(h *simHost, dst topology.NodeID) {
	if !h.stopped {
		h.w.Active(s.topo.Node(dst).Addr, s.topo.Node(dst).Addr, s.now)
		s.settle(h)
	}
	s.after(300*time.Millisecond, func() { s.keepActive(h, dst) })
}

// both puts a fault on both sides of a link.
func (s *world) both(l topology.LinkID, f fault) {
	s.faults[side{l, true}], s.faults[side{l, false}] = f, f
}

func (s *world) link(name string) topology.LinkID {
	s.t.Helper()
	l, err := s.topo.LinkByName(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return l.ID
}

func (s *world) node(name string) topology.NodeID {
	s.t.Helper()
	n, err := s.topo.Lookup(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return n.ID
}
