package stack

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/dataplane"
	"weft/internal/paths"
	"weft/link"
	"weft/liveness"
	"weft/topology"
)

// monitor runs a Watcher: it tells it what egress has seen, sends its probes and
// has egress use the topology that it says. A timer drives it.
//
// Locks are taken in the order of ingress, monitor, egress.
type monitor struct {
	config  *Liveness
	egress  *dataplane.Egress
	clock   Clock
	seed    uint64
	write   func(bufs [][]byte) int // takes packets behind link.SuperHeadroom, returns how many
	chooser PathDevice              // nil if the device chooses no paths
	self    netip.Addr
	carrier encap.Carrier
	mtu     int
	outers  map[probeKey]encap.Outer // guarded by mu; of probes lately sent
	labels  liveness.Labels          // guarded by mu
	timer   Timer
	kicked  atomic.Bool // the timer has been asked to expire now

	mu       sync.Mutex
	watcher  *liveness.Watcher
	current  *topology.Topology // that egress has
	carriage *liveness.Carriage // the same
	closed   bool
	bufs     [][]byte // one per probe of a batch
	batch    [][]byte
	id       uint16 // outer IPv4 ID
	echoes   bucket.Bucket
	stats    LivenessStats

	telling sync.Mutex
	told    *topology.Topology
	toldOf  *liveness.Carriage
}

// probeBatch is the most probes that are written at once.
const probeBatch = 64

// newMonitor returns one that begins to probe at once. c has been validated.
func newMonitor(c *Config, e *dataplane.Egress, clock Clock, seed uint64, write func([][]byte) int, chooser PathDevice) *monitor {
	l, address, t, carrier, mtu := c.Liveness, c.Address, e.Topology(), c.Carrier, c.Device.MTU()
	w, _ := l.watcher(t, address, carrier, mtu, seed)
	m := &monitor{
		config: l, egress: e, clock: clock, seed: seed, write: write, chooser: chooser, self: address,
		carrier: carrier, mtu: mtu, outers: make(map[probeKey]encap.Outer),
		watcher: w, current: t, told: t, echoes: bucket.New(maxEchoes, time.Second),
		bufs: make([][]byte, probeBatch), batch: make([][]byte, 0, probeBatch),
	}
	for i := range m.bufs {
		m.bufs[i] = make([]byte, dataplane.Headroom+max(mtu, encap.ProbeLen))
	}
	m.relabel(t)
	m.timer = clock.AfterFunc(time.Hour, m.tick)
	e.OnLoss(m.kick)
	e.SetCarriage(w.Carriage())
	m.timer.Reset(0)
	return m
}

// kick has the Watcher told at once. It may be called with any lock held.
func (m *monitor) kick() {
	if !m.kicked.Swap(true) {
		m.timer.Reset(0)
	}
}

// tick is the timer's work.
func (m *monitor) tick() {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.kicked.Store(false)
	now := m.clock.Now()
	m.egress.Report(m.watcher, now)
	m.watcher.Tick(now)
	m.settle(now)
	m.mu.Unlock()
	_ = m.tell() // counted, and tried again at the next tick
}

// settle does what the Watcher wants done.
func (m *monitor) settle(now time.Duration) {
	m.watcher.Probes(m.probe)
	m.flush()
	news := false
	if t := m.watcher.Topology(); t != m.current {
		m.current, news = t, true
		m.egress.SetTopology(t)
	}
	if c := m.watcher.Carriage(); c != m.carriage {
		m.carriage, news = c, true
		m.egress.SetCarriage(c)
	}
	if news && m.chooser != nil {
		m.kick() // tells, without ingress's lock
	}
	m.timer.Reset(min(max(m.watcher.Next()-now, minPause), maxReport))
	if m.kicked.Load() { // perhaps before the timer was set
		m.timer.Reset(0)
	}
}

// tell tells a device that chooses paths which topology is in use.
func (m *monitor) tell() error {
	if m.chooser == nil {
		return nil
	}
	m.telling.Lock()
	defer m.telling.Unlock()
	m.mu.Lock()
	t, c, closed := m.current, m.carriage, m.closed
	m.mu.Unlock()
	if closed {
		return nil
	}
	err := m.tellOf(t, c)
	if err != nil {
		m.mu.Lock()
		m.stats.Untold++
		m.mu.Unlock()
	}
	return err
}

// tellOf is called with telling held.
func (m *monitor) tellOf(t *topology.Topology, c *liveness.Carriage) error {
	if t != m.told {
		if err := m.chooser.SetTopology(t); err != nil {
			return err
		}
		m.told = t
	}
	if c != m.toldOf {
		if err := m.chooser.SetCarriage(c); err != nil {
			return err
		}
		m.toldOf = c
	}
	return nil
}

// setTopology replaces what is known from others.
func (m *monitor) setTopology(t *topology.Topology) error {
	m.mu.Lock()
	err := m.rebase(t, m.clock.Now())
	m.mu.Unlock()
	return errors.Join(err, m.tell())
}

func (m *monitor) rebase(t *topology.Topology, now time.Duration) (err error) {
	switch {
	case m.closed:
		return net.ErrClosed
	case t.String() == m.current.String():
		err = m.watcher.SetTopology(t, now)
	default: // another fabric: the host may have another number
		var w *liveness.Watcher
		if w, err = m.config.watcher(t, m.self, m.carrier, m.mtu, m.seed); err == nil {
			m.watcher = w
			m.relabel(t)
		}
	}
	if err == nil {
		m.settle(now)
	}
	return err
}

// relabel has probes take their paths through a fabric.
func (m *monitor) relabel(t *topology.Topology) {
	self, _ := t.ByAddr(m.self)
	m.labels = liveness.Labels{Topology: t, Self: self}
	clear(m.outers)
}

// receive takes a packet that encap.IsProbe takes for one, and may change it.
func (m *monitor) receive(packet []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	now := m.clock.Now()
	p, err := encap.ParseProbe(packet)
	switch {
	case err != nil:
		m.stats.Forged++
	case p.Kind == encap.ProbeRequest:
		m.echo(packet, p.Origin, now)
	default:
		m.watcher.Answer(packet, now)
		m.settle(now)
	}
}

// tooLong takes an ICMP error if it is about a probe.
func (m *monitor) tooLong(packet []byte) bool {
	if _, _, err := encap.ProbeTooBig(packet); err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		now := m.clock.Now()
		m.watcher.TooBig(packet, now)
		m.settle(now)
	}
	return true
}

// echo sends a probe back by the path by which it has come: a path has the same
// number in both directions.
func (m *monitor) echo(packet []byte, to netip.Addr, now time.Duration) {
	path, err := encap.ReplyProbe(packet)
	if err != nil {
		m.stats.Forged++
		return
	}
	size := int(binary.BigEndian.Uint16(packet[2:])) // of a padded one more
	outer, ok := m.outer(to, int(path))
	ok = ok && dataplane.Headroom+size <= len(m.bufs[0])
	if !ok || !m.echoes.Take(1, now) {
		m.stats.Refused++
		return
	}
	if from, ok := m.current.ByAddr(to); ok {
		m.watcher.Heard(from, now)
	}
	m.stats.Echoed++
	m.add(&outer, func(b []byte) []byte { return append(b, packet[:size]...) })
	m.flush()
}

// outer is the outer header of a path to a host, live or not: whether it is alive
// is what the host wants to know.
func (m *monitor) outer(to netip.Addr, path int) (o encap.Outer, ok bool) {
	return paths.OuterTo(m.current, m.carrier, m.self, to, path)
}

// probe sends a request by its path, or a boomerang round its bouncing switch.
func (m *monitor) probe(p *liveness.Probe) {
	o, ok := m.outers[probeKey{p.Dst, p.Path, p.Via}]
	if !ok {
		if o, ok = m.outerOf(p); !ok {
			return
		}
		if len(m.outers) >= maxOuters {
			clear(m.outers)
		}
		m.outers[probeKey{p.Dst, p.Path, p.Via}] = o
	}
	m.add(&o, p.Append)
}

// add puts a packet, with this outer header, into the batch.
func (m *monitor) add(o *encap.Outer, appendTo func([]byte) []byte) {
	buf := m.bufs[len(m.batch)]
	inner := appendTo(buf[:dataplane.Headroom])
	m.id++
	out, err := o.Encapsulate(inner[link.SuperHeadroom:], m.id)
	if err != nil {
		return
	}
	m.batch = append(m.batch, inner[len(inner)-len(out)-link.SuperHeadroom:])
	if len(m.batch) == probeBatch {
		m.flush()
	}
}

func (m *monitor) flush() {
	if len(m.batch) > 0 {
		m.stats.Drops += uint64(len(m.batch) - m.write(m.batch))
		m.batch = m.batch[:0]
	}
}

// close ends it; the device is told nothing any more when it returns.
func (m *monitor) close() {
	m.mu.Lock()
	m.closed = true
	m.timer.Stop()
	m.mu.Unlock()
	m.telling.Lock()
	m.telling.Unlock()
}

// health is what is known of each path.
func (m *monitor) health() ([]liveness.PathHealth, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.watcher.Paths(), m.clock.Now()
}

func (m *monitor) snapshot() LivenessStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Watcher = m.watcher.Stats()
	s.Evidence = m.egress.EvidenceStats()
	return s
}
