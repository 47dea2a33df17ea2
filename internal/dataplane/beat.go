package dataplane

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"weft/internal/clock"
)

// beatEvery is how often an idle goroutine that moves packets shows that it lives:
// half of what GatewayConfig promises. It wakes up 10 times a second for that. While
// packets come, it looks at the clock once for each batch.
const beatEvery = 100 * time.Millisecond

// beats is the real time of all beats, of which those of idle goroutines come at the same
// times: the process wakes up once for all of them.
var beats = clock.Real()

// UntilBeat returns the time until the next multiple of a period, on the clock of the beats. The
// period is a multiple of 100 ms. An idle process then wakes up once for all that wait.
func UntilBeat(period time.Duration) time.Duration { return period - beats.Now()%period }

// deadliner is a device whose Read can be made to return with os.ErrDeadlineExceeded.
type deadliner interface{ SetReadDeadline(t time.Time) error }

// beat lets the goroutine that reads from a device show that it lives. It belongs to
// that goroutine. The zero value does nothing.
type beat struct {
	show  func()
	dev   deadliner // nil: Read never waits
	clock clock.Clock
	next  time.Duration // when to show it again
}

// newBeat returns the beat of the goroutine that reads from a device. c is nil in
// real time, where reading waits.
func newBeat(name string, show func(), dev any, c clock.Clock) (b beat, err error) {
	if show == nil {
		return b, nil
	}
	if c != nil {
		return beat{show: show, clock: c}, nil
	}
	d, ok := dev.(deadliner)
	if !ok {
		return b, fmt.Errorf("dataplane: GatewayConfig.%s: the device has no SetReadDeadline, which is needed to beat while no packets come", name)
	}
	return beat{show: show, dev: d, clock: beats}, nil
}

// together returns, for each of n goroutines, the function that it calls to show that
// it lives. show is called when all have called theirs since the last time. If show
// is nil, so are the functions.
func together(n int, show func()) []func() {
	all := make([]func(), n)
	if show == nil || n == 1 {
		for i := range all {
			all[i] = show
		}
		return all
	}
	var mu sync.Mutex
	shown, count := make([]bool, n), 0
	for i := range all {
		all[i] = func() {
			mu.Lock()
			defer mu.Unlock()
			if shown[i] {
				return
			}
			shown[i] = true
			if count++; count == n {
				clear(shown)
				count = 0
				show()
			}
		}
	}
	return all
}

// before is called before each Read.
func (b *beat) before() {
	if b.show == nil {
		return
	}
	now := b.clock.Now()
	if now < b.next {
		return
	}
	b.next = now + beatEvery
	b.show()
	if b.dev != nil {
		b.next -= b.next % beatEvery
		_ = b.dev.SetReadDeadline(time.Now().Add(b.next - now)) // a closed device's Read returns anyhow
	}
}

// after takes what Read returned. That no packet came in time is no error.
func (b *beat) after(err error) error {
	if b.show != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
