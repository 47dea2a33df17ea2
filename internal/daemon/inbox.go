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

// inbox is where other goroutines leave news for the owner. They do not wait for
// it, so that it may wait for them to end. The latest news by an encapsulation
// replaces what was not taken.
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
