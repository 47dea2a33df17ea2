package switchd

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"weft/internal/lookout"
)

// longest is how long the agent sleeps at most.
const longest = time.Hour

// run drives the protocol. It reads what came in before it looks at the clock. So a switch
// that was too busy to run does not take neighbours for dead whose hellos wait at its
// ports.
func (a *Agent) run() {
	defer close(a.ended)
	for {
		a.mu.Lock()
		a.due = min(a.machine.Next(), a.now()+longest)
		due := a.due
		a.mu.Unlock()
		if err := a.ports.Wait(a.started.Add(due), handler{a}); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				a.mu.Lock()
				a.err = err
				a.mu.Unlock()
			}
			return
		}
		a.turn()
	}
}

// late is for how long the loop has been due without coming round; negative while
// it is not.
func (a *Agent) late() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now() - a.due
}

// turn sends what is due, and then passes on what has changed: neighbours and
// servers are told before the own routes are mended.
func (a *Agent) turn() {
	a.mu.Lock()
	if a.left {
		a.mu.Unlock()
		return
	}
	a.machine.Tick(a.now())
	a.machine.Send(a.ports.Send)
	t := a.machine.Topology()
	was, changed := a.shown, t != a.shown
	if changed {
		a.shown = t
		a.changes++
	}
	tell := func() {}
	if a.config.Log != nil && (a.neighbours == nil || a.machine.Stats().Reports != a.reports) {
		tell = a.neighbourNews() // the fabric may not change: of a link that the other end calls down
	}
	a.mu.Unlock()
	tell()
	if !changed {
		return
	}
	lookout.SayLinks(a.config.Log, was, t)
	if a.repair != nil {
		a.repair.set(t)
	}
	if a.config.Changed != nil {
		a.config.Changed(t)
	}
}

// handler is an Agent as package wire sees it.
type handler struct{ a *Agent }

func (h handler) Carrier(port int, up bool) {
	if h.a.config.Carrier != nil {
		h.a.config.Carrier(port, up)
	}
	h.locked(func(a *Agent) { a.machine.Carrier(port, up, a.now()) })
	if up && h.a.repair != nil {
		h.a.repair.resync()
	}
}

func (h handler) Receive(port int, _ netip.Addr, message []byte) {
	h.locked(func(a *Agent) { a.machine.Receive(port, message, a.now()) })
}

func (h handler) locked(f func(*Agent)) {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	if !h.a.left {
		f(h.a)
	}
}
