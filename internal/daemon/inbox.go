package daemon

import (
	"sync"

	"weft/liveness"
	"weft/topology"
)

// news is what has become known of the paths by one encapsulation.
type news struct {
	by       string // "" for any: what switches say, where nothing is probed
	topology *topology.Topology
	carriage *liveness.Carriage // nil: used everywhere, unproved
}

// inbox holds news from other goroutines for the owner. They never wait for the owner, so
// the owner may wait for them to end. Newer news about an encapsulation replaces older news
// that the owner has not taken.
type inbox struct {
	wake chan struct{} // buffers one

	mu     sync.Mutex
	latest map[string]news
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// clear throws away what was left by a follower that has been closed since.
func (in *inbox) clear() { in.take() }

func (in *inbox) put(n news) {
	in.mu.Lock()
	if in.latest == nil {
		in.latest = make(map[string]news)
	}
	in.latest[n.by] = n
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// take returns the latest news, by encapsulation.
func (in *inbox) take() map[string]news {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.latest
	in.latest = nil
	return n
}
