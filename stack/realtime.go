package stack

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// pacedClock is the real time for netstack. Its timers run one after the other.
//
// Each of Go's timers runs in a goroutine of its own. When a program closes 50,000
// connections, as many retransmission timers are due 20 ms later, and the few goroutines
// that take acknowledgements wait behind all of them. So each round of timers makes the
// next one longer: closing n connections took time as n². Timers that wait for each other
// do not occupy the scheduler, and when their turn comes most of them find nothing left
// to send.
type pacedClock struct {
	tcpip.Clock
	turn chan struct{}
}

func newPacedClock() pacedClock {
	return pacedClock{tcpip.NewStdClock(), make(chan struct{}, 1)}
}

func (c pacedClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return pacedTimer{time.AfterFunc(d, func() {
		c.turn <- struct{}{}
		defer func() { <-c.turn }()
		f()
	})}
}

type pacedTimer struct{ *time.Timer }

func (t pacedTimer) Reset(d time.Duration) { t.Timer.Reset(d) }
