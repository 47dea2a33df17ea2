// Package lookout has a host go by what it finds out itself about its paths. A Lookout runs a
// probe.Driver by a clock and hands on what is new: at once to what sends packets, then,
// without a lock, to whoever else is to know. A Journal says the same to a log.
//
// A stack.Host has a Lookout of its own. For the kernel's TCP the daemon has one for each
// carrier (package prober), and so have the kernels of the simulator.
package lookout

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weft/internal/clock"
	"weft/internal/event"
	"weft/internal/probe"
	"weft/liveness"
	"weft/topology"
)

// Config says what a Lookout runs, and who goes by it.
type Config struct {
	// Probe says whose paths are probed, and how. New sets its Clock. Its functions are
	// called with the Lookout's lock held and must not call the Lookout.
	Probe probe.Config
	// Clock is the time to live in.
	Clock clock.Clock
	// Flush, if not nil, is called after the last Write for the moment, with the lock held.
	Flush func()
	// Plane, if not nil, sends packets by what is found out. It is told at once, with the
	// lock held, and must not call the Lookout. It begins with Probe.Topology.
	Plane Plane
	// Tell, if not nil, is called with all that is new, and first with what is known at the
	// beginning. Of several changes in a row it may hear of the last only. Calls do not
	// overlap, and no lock is held that packets need. After an error it is called again, 10 ms
	// later or before. It must not call Close or SetTopology.
	Tell func(*topology.Topology, *liveness.Carriage) error
	// Journal, if not nil, is told what has changed, after Tell.
	Journal *Journal
}

// Plane is what sends packets by the paths of a topology.
type Plane interface {
	SetTopology(*topology.Topology)
	SetCarriage(*liveness.Carriage)
}

// Lookout runs a probe.Driver from Start to Close. Its methods are safe for concurrent use.
type Lookout struct {
	config Config
	alarm  *clock.Alarm

	mu     sync.Mutex
	driver *probe.Driver
	found  verdict       // that Plane goes by
	again  time.Duration // when Tell is told again what it did not take; clock.Never: it has taken all
	closed bool

	telling sync.Mutex // held while Tell and Journal are called; taken before mu
	told    verdict    // by Tell
	noted   verdict    // in the Journal
}

// verdict is what a Driver says of the paths.
type verdict struct {
	topology *topology.Topology
	carriage *liveness.Carriage
}

const (
	// leastPause is the shortest time between two looks at what is due.
	leastPause = 100 * time.Microsecond
	// tellAgain is when Tell is called again after an error.
	tellAgain = 10 * time.Millisecond
)

// New returns a Lookout that does nothing before Start. An error names the field of
// Config.Probe.
func New(c Config) (*Lookout, error) {
	c.Probe.Clock = c.Clock.Now
	d, err := probe.New(c.Probe)
	if err != nil {
		return nil, err
	}
	l := &Lookout{config: c, driver: d, found: verdict{topology: c.Probe.Topology}, again: clock.Never}
	l.alarm = clock.NewAlarm(c.Clock, leastPause, l.tick)
	return l, nil
}

// Start begins to probe.
func (l *Lookout) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use()
	l.alarm.Kick()
}

// Kick has the Driver look at its traffic (probe.Config.Observe) now. It may be called with
// any lock held.
func (l *Lookout) Kick() { l.alarm.Kick() }

// tick is the timer's work.
func (l *Lookout) tick() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.alarm.Rang()
	l.driver.Tick(l.config.Clock.Now())
	l.settle()
	l.mu.Unlock()
	if l.telling.TryLock() { // else another looks again when it has told
		_ = l.tell() // is told again
	}
}

// settle sends what Write has kept, has the Plane go by what the Driver says, and the timer
// expire when something is due. news says that Tell and the Journal are to know.
func (l *Lookout) settle() (news bool) {
	if l.config.Flush != nil {
		l.config.Flush()
	}
	news = l.use()
	l.alarm.Set(l.next())
	return news && (l.config.Tell != nil || l.config.Journal != nil)
}

// next is when something is due. With a Journal that is now and then, for what it suppressed.
func (l *Lookout) next() time.Duration {
	next := min(l.driver.Next(), l.again)
	if l.config.Journal != nil {
		next = min(next, l.config.Clock.Now()+event.TellAfter)
	}
	return next
}

// use has the Plane go by what the Driver says.
func (l *Lookout) use() (news bool) {
	was := l.found
	l.found = verdict{l.driver.Topology(), l.driver.Carriage()}
	if p := l.config.Plane; p != nil {
		if l.found.topology != was.topology {
			p.SetTopology(l.found.topology)
		}
		if l.found.carriage != was.carriage {
			p.SetCarriage(l.found.carriage)
		}
	}
	return l.found != was
}

// tell has Tell and the Journal know what is new to them. It is called with telling held
// and gives it back.
func (l *Lookout) tell() (err error) {
	l.mu.Lock()
	l.again = clock.Never
	v, closed := l.found, l.closed
	var suspects []liveness.Suspect
	note := l.config.Journal != nil && v != l.noted && !closed
	if note {
		suspects = l.driver.Watcher().Suspects()
	}
	l.mu.Unlock()
	if l.config.Tell != nil && v != l.told && !closed {
		if err = l.config.Tell(v.topology, v.carriage); err == nil {
			l.told = v
		}
	}
	if note {
		l.config.Journal.Found(v.topology, suspects, v.carriage)
		l.noted = v
	}
	if !closed {
		l.config.Journal.Flush()
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.telling.Unlock()
	switch {
	case l.closed:
	case v != l.found: // who found it did not wait
		l.alarm.Kick()
	case err != nil:
		l.again = l.config.Clock.Now() + tellAgain
		l.alarm.Set(l.next())
	}
	return err
}

// SetTopology replaces what is known from elsewhere. When it returns, Plane and Tell know of
// it. It fails with Tell's error, with net.ErrClosed after Close, and if t does not have the
// host.
func (l *Lookout) SetTopology(t *topology.Topology) error {
	if err := l.rebase(t); err != nil {
		return err
	}
	l.telling.Lock()
	return l.tell()
}

func (l *Lookout) rebase(t *topology.Topology) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	if err := l.driver.SetTopology(t, l.config.Clock.Now()); err != nil {
		return err
	}
	l.settle()
	l.alarm.Kick() // what is to be probed may be due
	return nil
}

// Take takes packets from the fabric, see probe.Driver.Take. It may write to them, and
// keeps nothing of them.
func (l *Lookout) Take(bufs ...[]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for _, b := range bufs {
		l.driver.Take(b, l.config.Clock.Now())
	}
	if l.settle() {
		l.alarm.Kick() // tells, without the locks of who calls
	}
}

// Active says to whom there are connections, see probe.Driver.Active.
func (l *Lookout) Active(peers ...netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range peers {
		l.driver.Active(p, l.config.Clock.Now())
	}
	l.alarm.Kick()
}

// Topology is the fabric without what is known to be dead: what Plane goes by, and what
// Tell is or will be told.
func (l *Lookout) Topology() *topology.Topology {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found.topology
}

// Carriage says to which racks the carrier is used. It belongs to Topology.
func (l *Lookout) Carriage() *liveness.Carriage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found.carriage
}

// Paths says how the paths are, and why, and what time it is by the clock of that.
func (l *Lookout) Paths() ([]liveness.PathHealth, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.driver.Paths(), l.config.Clock.Now()
}

// Suspects returns the links that are suspected, and the paths that one destination accuses.
func (l *Lookout) Suspects() []liveness.Suspect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.driver.Watcher().Suspects())
}

// Stats returns the counters of the Driver.
func (l *Lookout) Stats() probe.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.driver.Stats()
}

// Close ends the Lookout. When it returns, none of Config's functions is called any more.
func (l *Lookout) Close() {
	l.mu.Lock()
	l.closed = true
	l.alarm.Set(clock.Never)
	l.mu.Unlock()
	l.telling.Lock() // waits for Tell to end
	l.config.Journal.ended()
	l.telling.Unlock()
}
