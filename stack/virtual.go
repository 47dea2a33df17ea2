package stack

import (
	"math/rand/v2"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/waiter"
	"weft/third_party/netstack/tcp"
)

// virtual is what a Host in a Config.Simulation has besides: netstack's view of
// that clock, and a way to wait until netstack has come to rest. A Host in real
// time has none, and the methods of a nil *virtual do nothing.
type virtual struct {
	clock Clock
	net   *gstack.Stack
	// segments counts what TCP's goroutines were given, ever; settled is what
	// it was when they were last seen at rest.
	segments *tcpip.StatCounter
	settled  uint64

	mu   sync.Mutex
	read time.Duration // what the clock was last read as
}

// now is the clock's time, but later than when it was last read, if by a
// nanosecond: so it is in the real world, and RACK takes what was sent at the
// very time of a packet that has arrived for lost.
func (v *virtual) now() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.read = max(v.clock.Now(), v.read+1)
	return v.read
}

// options makes netstack depend on nothing but the clock and the seed.
func (v *virtual) options(seed uint64) gstack.Options {
	if v == nil {
		return gstack.Options{Clock: newPacedClock()}
	}
	return gstack.Options{
		Clock:      netstackClock{v},
		RandSource: newNoise(seed, 1),
		SecureRNG:  newNoise(seed, 2),
	}
}

// attach is called before netstack does anything.
func (v *virtual) attach(net *gstack.Stack) {
	if v != nil {
		v.net = net
		v.segments = net.Stats().TCP.ValidSegmentsReceived
	}
}

// settle returns once TCP's goroutines, which are the only ones that netstack
// has, wait for something to do. As settle is called after every packet, they
// never have more than one at a time, and the order of what they do is given.
func (v *virtual) settle() {
	if v == nil {
		return
	}
	for n := v.segments.Value(); n != v.settled; n = v.segments.Value() {
		v.settled = n
		// Pausing stops one goroutine after the other, each when it has nothing
		// left to do. A later one may have handed work to an earlier one (a new
		// SYN from TIME-WAIT to its listener), hence twice.
		for range 2 {
			v.net.Pause()
			v.net.Resume()
		}
	}
}

// onceConnected calls f when s, which is connecting, is connected. In real time
// it has been since before.
func (v *virtual) onceConnected(s *socket, f func()) {
	if v == nil {
		return
	}
	var once sync.Once
	var entry waiter.Entry
	entry = waiter.NewFunctionEntry(waiter.WritableEvents, func(waiter.EventMask) {
		// Netstack holds its locks: later, but at the same time.
		once.Do(func() {
			v.clock.AfterFunc(0, func() {
				s.wq.EventUnregister(&entry)
				f()
			})
		})
	})
	s.wq.EventRegister(&entry)
	if tcp.EndpointState(s.ep.State()) == tcp.StateEstablished { // accepted, or to oneself
		once.Do(func() {
			s.wq.EventUnregister(&entry)
			f()
		})
	}
}

// netstackClock is a Clock as netstack wants it.
type netstackClock struct{ *virtual }

var _ tcpip.Clock = netstackClock{}

// epoch is when a virtual clock's zero is: far enough from netstack's zero
// time, which it takes for "never".
var epoch = time.Unix(1_000_000_000, 0)

func (c netstackClock) Now() time.Time { return epoch.Add(c.now()) }

func (c netstackClock) NowMonotonic() tcpip.MonotonicTime {
	var zero tcpip.MonotonicTime
	return zero.Add(time.Hour + c.now())
}

func (c netstackClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return netstackTimer{c.clock.AfterFunc(d, func() {
		f()
		c.settle()
	})}
}

type netstackTimer struct{ Timer }

func (t netstackTimer) Reset(d time.Duration) { t.Timer.Reset(d) }

// noise is a source of random numbers for netstack, which wants some from a
// rand.Source and some from an io.Reader.
type noise struct {
	mu  sync.Mutex
	pcg rand.PCG
}

func newNoise(seed, stream uint64) *noise { return &noise{pcg: *rand.NewPCG(seed, stream)} }

func (n *noise) Int63() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int64(n.pcg.Uint64() >> 1)
}

// Seed does nothing: the seed is Config.Simulation.Seed.
func (n *noise) Seed(int64) {}

func (n *noise) Read(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range b {
		b[i] = byte(n.pcg.Uint64())
	}
	return len(b), nil
}

// Notifier is implemented by all connections and listeners of a Host.
type Notifier interface {
	// Notify makes the Host call f whenever a call that failed with EAGAIN may succeed,
	// until the connection is closed. f must not call the Host or any of its sockets.
	// Another Notify replaces f.
	Notify(f func())
}

var (
	_ Notifier = tcpConn{}
	_ Notifier = tcpListener{}
	_ Notifier = udpConn{}
)

// Notify implements Notifier.
func (s *socket) Notify(f func()) {
	if s.notify != nil {
		s.wq.EventUnregister(s.notify)
	}
	const every = waiter.ReadableEvents | waiter.WritableEvents | waiter.EventRdHUp | waiter.EventHUp | waiter.EventErr
	entry := waiter.NewFunctionEntry(every, func(waiter.EventMask) { f() })
	s.notify = &entry
	s.wq.EventRegister(s.notify)
}

// Notify implements Notifier.
func (l tcpListener) Notify(f func()) { l.s.Notify(f) }
