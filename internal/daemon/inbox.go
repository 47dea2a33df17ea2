package daemon

import (
	"sync"

	"weft/topology"
)

// news is what has become known of the paths.
type news struct {
	topology *topology.Topology
}

// inbox is where other goroutines leave news for the owner. They do not wait for
// it, so that it may wait for them to end. The latest news replaces what was not
// taken.
type inbox struct {
	wake chan struct{} // buffers one

	mu     sync.Mutex
	latest *news
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

// clear throws away what was left by a follower that has been closed since.
func (in *inbox) clear() { in.take() }

func (in *inbox) put(n news) {
	in.mu.Lock()
	in.latest = &n
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// take returns the latest news, if there is any.
func (in *inbox) take() *news {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := in.latest
	in.latest = nil
	return n
}
