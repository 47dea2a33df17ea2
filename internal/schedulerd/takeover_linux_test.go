package schedulerd

import (
	"testing"
	"time"
)

// between has something done while nobody leads. The next leader computes no round in the test's time.
func (l *led) between(do func()) (rounds uint64) {
	l.stop()
	do()
	rounds = l.status().Rounds
	l.campaign(time.Hour, 0)
	return rounds
}

// The next leader tells what it has taken over as soon as that is stored for it, not after a period: pins
// may end before.
func TestCandidate_tellsWhatItTakesOverAtOnce(t *testing.T) {
	l := newLed(t)
	rounds := l.between(func() {
		l.host.mu.Lock()
		defer l.host.mu.Unlock()
		clear(l.host.placed)
	})
	within(t, "the flow is placed by its path", func() bool { return l.at() == l.path })
	if n := l.status().Rounds; n != rounds {
		t.Errorf("%d rounds were computed", n-rounds)
	}
}

// A path dies while nobody leads: the next leader withdraws the placement that it does not take over.
func TestCandidate_withdrawsWhatItDoesNotTakeOver(t *testing.T) {
	l := newLed(t)
	l.between(func() {
		if err := l.heard(l.top.Without(l.dead)); err != nil {
			t.Fatal(err)
		}
	})
	within(t, "the placement on the dead path is withdrawn", func() bool { return l.at() < 0 })
}
