package simnet

import (
	"math"
	"sync"
	"time"

	"weft/link"
	"weft/topology"
)

// coalesce is the shortest sleep of a Runner. Packets may be handed over this
// much late, plus what the runtime's timers are off, about a millisecond at
// worst; inside the Network they are never late, for its arithmetic knows only
// the times at which things should happen.
const coalesce = 100 * time.Microsecond

// readBatch is how many packets of a host are taken at once.
const readBatch = 32

// Runner drives a Network in real time. It is safe for concurrent use.
//
// It has a goroutine per host, which injects what the host sends, and one that
// sleeps until the next deadline and delivers.
type Runner struct {
	start   time.Time
	near    []*link.Memory // by host: the host's end
	far     []*link.Memory // by host: the fabric's
	stop    chan struct{}
	wake    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once

	mu     sync.Mutex // guards the rest
	net    *Network
	wakeAt time.Duration
}

// Start runs a network, which is the Runner's from now on, with a device of the
// given MTU (bytes, 0 means link.DefaultMTU) for each of its hosts.
func Start(n *Network, mtu int) *Runner {
	r := &Runner{
		start:  time.Now(),
		net:    n,
		stop:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		wakeAt: math.MaxInt64,
	}
	for id := range n.nodes {
		if n.nodes[id].layer != topology.LayerHost {
			break
		}
		near, far := link.NewPair(mtu, 0)
		r.near, r.far = append(r.near, near), append(r.far, far)
	}
	for id := range r.far {
		r.stopped.Go(func() { r.inject(topology.NodeID(id)) })
	}
	r.stopped.Go(r.drive)
	return r
}

// Device returns the host's end of its uplink. Closing it is up to the caller,
// who does so before or after the Runner's Close.
func (r *Runner) Device(host topology.NodeID) *link.Memory { return r.near[host] }

// Inspect calls f with the network while nothing moves in it. f must not call
// the Runner nor keep the Network.
func (r *Runner) Inspect(f func(n *Network)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.net)
}

// Undelivered returns how many packets crossed the fabric and were lost at the
// end because the host had not read those before them, or was closed.
func (r *Runner) Undelivered() (sum uint64) {
	for _, far := range r.far {
		sum += far.Drops()
	}
	return sum
}

// Close stops the fabric and waits until its goroutines are gone. Packets in
// flight are lost. It may be called more than once.
func (r *Runner) Close() {
	r.once.Do(func() {
		close(r.stop)
		for _, far := range r.far {
			far.Close()
		}
	})
	r.stopped.Wait()
}

// inject feeds the network with what a host sends, until the device is closed.
func (r *Runner) inject(host topology.NodeID) {
	far := r.far[host]
	bufs, sizes := make([][]byte, readBatch), make([]int, readBatch)
	for i := range bufs {
		bufs[i] = make([]byte, far.MTU())
	}
	for {
		count, err := far.Read(bufs, sizes, 0)
		if err != nil {
			return
		}
		r.mu.Lock()
		now := time.Since(r.start)
		for i := range count {
			r.net.Inject(host, bufs[i][:sizes[i]], now)
		}
		next, ok := r.net.NextDeadline()
		oversleeps := ok && next+coalesce < r.wakeAt
		r.mu.Unlock()
		if oversleeps {
			select {
			case r.wake <- struct{}{}:
			default: // woken already
			}
		}
	}
}

// drive delivers, then sleeps until the next deadline or until a packet makes
// that an earlier one.
func (r *Runner) drive() {
	one := make([][]byte, 1)
	deliver := func(host topology.NodeID, packet []byte) {
		one[0] = packet
		r.far[host].Write(one, 0) // a loss is counted there: Undelivered
	}
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-r.wake:
		case <-timer.C:
		}
		r.mu.Lock()
		r.net.Advance(time.Since(r.start), deliver)
		now := time.Since(r.start)
		r.wakeAt = math.MaxInt64
		if next, ok := r.net.NextDeadline(); ok {
			r.wakeAt = max(next, now+coalesce)
		}
		timer.Reset(r.wakeAt - now)
		r.mu.Unlock()
	}
}
