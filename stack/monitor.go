package stack

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"weft/encap"
	"weft/internal/dataplane"
	"weft/internal/probe"
	"weft/link"
	"weft/liveness"
	"weft/topology"
)

// monitor runs a probe.Driver: it tells it what egress has seen, sends its probes and
// has egress use the topology that it says. A timer drives it.
//
// Locks are taken in the order of ingress, monitor, egress.
type monitor struct {
	config  *Liveness
	egress  *dataplane.Egress
	clock   Clock
	write   func(bufs [][]byte) int // takes packets behind link.SuperHeadroom, returns how many
	chooser PathDevice              // nil if the device chooses no paths
	self    netip.Addr
	timer   Timer
	kicked  atomic.Bool // the timer has been asked to expire now

	mu       sync.Mutex
	driver   *probe.Driver
	current  *topology.Topology // that egress has
	carriage *liveness.Carriage // the same
	closed   bool
	bufs     [][]byte // one per probe of a batch, behind link.SuperHeadroom
	batch    [][]byte
	taken    []byte // what has come in, behind room for an outer header
	stats    LivenessStats
	noted    *topology.Topology // that the journal knows
	notedOf  *liveness.Carriage // the same

	journal *journal
	telling sync.Mutex
	told    *topology.Topology
	toldOf  *liveness.Carriage
}

// probeBatch is the most probes that are written at once.
const probeBatch = 64

// newMonitor returns one that begins to probe at once. host has been validated.
func newMonitor(host *Config, e *dataplane.Egress, clock Clock, seed uint64, write func([][]byte) int, chooser PathDevice, j *journal) *monitor {
	l, t, mtu := host.Liveness, e.Topology(), host.Device.MTU()
	m := &monitor{
		config: l, egress: e, clock: clock, write: write, chooser: chooser, journal: j, self: host.Address, current: t, told: t,
		bufs: make([][]byte, probeBatch), batch: make([][]byte, 0, probeBatch), taken: make([]byte, dataplane.Headroom+mtu),
	}
	for i := range m.bufs {
		m.bufs[i] = make([]byte, link.SuperHeadroom, link.SuperHeadroom+max(mtu, encap.MaxOverhead+encap.ProbeLen))
	}
	c := l.probing(t, host.Address, host.Carrier, mtu, seed)
	c.Clock, c.Write = clock.Now, m.add
	c.Observe = func(w *liveness.Watcher, now time.Duration) { e.Report(w, now) }
	m.driver, _ = probe.New(c)
	m.timer = clock.AfterFunc(time.Hour, m.tick)
	e.OnLoss(m.kick)
	e.SetCarriage(m.driver.Carriage())
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
	m.driver.Tick(m.clock.Now())
	m.flush()
	m.settle()
	m.mu.Unlock()
	_ = m.tell() // counted, and tried again at the next tick
	m.note()
}

// settle has egress and the device use what the Driver says, and the timer expire when
// something is due.
func (m *monitor) settle() {
	news := false
	if t := m.driver.Topology(); t != m.current {
		m.current, news = t, true
		m.egress.SetTopology(t)
	}
	if c := m.driver.Carriage(); c != m.carriage {
		m.carriage, news = c, true
		m.egress.SetCarriage(c)
	}
	if news && (m.chooser != nil || m.journal != nil) {
		m.kick() // tells, without ingress's lock
	}
	m.timer.Reset(max(m.driver.Next()-m.clock.Now(), minPause))
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
	m.journal.device(err)
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

// note tells the log what has changed.
func (m *monitor) note() {
	if m.journal == nil {
		return
	}
	m.mu.Lock()
	t, c, news := m.current, m.carriage, m.noted != m.current || m.notedOf != m.carriage
	var suspects []liveness.Suspect
	if news {
		suspects = m.driver.Watcher().Suspects()
	}
	m.noted, m.notedOf = t, c
	m.mu.Unlock()
	if news {
		m.journal.found(t, suspects, c)
	}
}

// setTopology replaces what is known from others.
func (m *monitor) setTopology(t *topology.Topology) error {
	err := m.rebase(t)
	return errors.Join(err, m.tell())
}

func (m *monitor) rebase(t *topology.Topology) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return net.ErrClosed
	}
	err := m.driver.SetTopology(t, m.clock.Now())
	if err == nil {
		m.settle()
	}
	return err
}

// receive takes a packet that encap.IsProbe takes for one.
func (m *monitor) receive(packet []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.take(packet)
}

// take hands a packet to the Driver.
func (m *monitor) take(packet []byte) {
	if m.closed {
		return
	}
	m.taken = append(m.taken[:encap.MaxOverhead], packet...)
	m.driver.Take(m.taken, m.clock.Now())
	m.flush()
	m.settle()
}

// tooLong takes an ICMP error if it is about a probe.
func (m *monitor) tooLong(packet []byte) bool {
	if _, _, err := encap.ProbeTooBig(packet); err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.take(packet)
	return true
}

// add puts a packet into the batch.
func (m *monitor) add(packet []byte, _ netip.Addr) error {
	m.batch = append(m.batch, append(m.bufs[len(m.batch)], packet...))
	if len(m.batch) == probeBatch {
		m.flush()
	}
	return nil
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
	return m.driver.Paths(), m.clock.Now()
}

func (m *monitor) snapshot() LivenessStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	d := m.driver.Stats()
	s.Watcher, s.Echoed, s.Refused, s.Forged = d.Watcher, d.Echoed, d.Refused, d.Forged
	s.Evidence = m.egress.EvidenceStats()
	return s
}
