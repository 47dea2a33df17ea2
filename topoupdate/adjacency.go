package topoupdate

import (
	"time"
)

// Bounds of what a neighbour may ask for, so that none can make a switch wait for
// ever.
const (
	minInterval  = time.Millisecond
	maxDetection = 30 * time.Second
)

// adjacency is what a switch knows of the neighbour at one port: a BFD session (RFC 5880)
// in all but the bytes.
//
// Each side numbers its attempts. mine begins at the time of the agent's start in
// nanoseconds and grows whenever the link is found dead, so it is never used twice. A
// message names its sender's attempt, and our attempt that the sender has heard. If the
// latter is mine, the message was sent after we last found the link dead, and the
// neighbour hears us. That proves that both directions work, and no recording can prove
// it. Within an attempt a window of counters keeps replays out. The sender's attempts
// must not go back.
//
// A message without the proof only says whom to answer. It makes no link live and no
// entry known.
type adjacency struct {
	mine   uint64
	theirs uint64 // 0: none heard in this attempt
	window ReplayWindow
	spoken bool // the neighbour has an agent: silence means something
	proven bool // it hears us, and we it
	alive  bool // the verdict
	why    string
	since  time.Duration // of the verdict
	// deadline is when the attempt ends unless something is heard; never if there is no
	// neighbour in it.
	deadline time.Duration
	detect   time.Duration // how long the neighbour may be silent, as agreed
	patience patience      // how much longer
	excused  time.Duration // added to the deadline since it was last heard
}

// excuse gives the neighbour more time because this switch is itself late and may not have
// heard it. The time is bounded, or a switch that is always late would never find a
// neighbour dead.
func (a *adjacency) excuse(late, now time.Duration) {
	if a.deadline != never {
		more := min(late, 2*a.patience.of(a.detect, now)-a.excused)
		a.deadline += more
		a.excused += more
	}
}

// Reasons for a verdict, as an operator reads them.
const (
	whySilent  = "has never spoken: judged by its carrier"
	whyWaiting = "is waited for"
	whyUp      = "hears us, and we it"
	whyTimeout = "was not heard in time"
	whyDeaf    = "does not hear us"
	whyCarrier = "no carrier"
	whyLeft    = "has left in order: judged by its carrier"
)

func (a *adjacency) verdict(alive bool, why string, now time.Duration) {
	if a.alive != alive || a.why != why {
		a.alive, a.why, a.since = alive, why, now
	}
}

// expire ends the attempt if its time has come; the next one is numbered next. A neighbour
// that is already dead is forgotten: it may come back with a lower number.
func (a *adjacency) expire(next func() uint64, now time.Duration) bool {
	if now < a.deadline {
		return false
	}
	if a.alive {
		a.patience.silent(now)
	}
	why := whyTimeout
	switch {
	case !a.alive:
		why = a.why
	case a.theirs != 0 && !a.proven:
		why = whyDeaf
	}
	a.lose(why, next(), now)
	return true
}

// lose ends the attempt; the next one is numbered next.
func (a *adjacency) lose(why string, next uint64, now time.Duration) {
	a.mine, a.theirs = next, 0
	a.window = ReplayWindow{}
	a.proven = false
	a.deadline = never
	a.verdict(false, why, now)
}

// screen tells cheaply whether a message may be new, before its MAC is looked at.
func (a *adjacency) screen(h *header) error {
	if h.session == 0 || h.session < a.theirs || h.session == a.theirs && !a.window.Fresh(h.counter) {
		return RejectReplay
	}
	if h.kind != typeHello && h.heard != a.mine {
		return RejectReplay
	}
	return nil
}

// admit records a message that has passed screen and its MAC. It returns true if the
// message completed the adjacency: the neighbour then knows nothing of this switch's
// database.
func (a *adjacency) admit(h *header, now time.Duration) (up bool) {
	if h.session != a.theirs {
		if a.alive && (a.proven || a.deadline == never) {
			// A neighbour that starts, or starts anew, is given time to hear us, once.
			a.deadline = now + a.patience.of(a.detect, now)
		}
		a.theirs = h.session
		a.window = ReplayWindow{}
		a.proven = false
	}
	a.window.Mark(h.counter)
	a.spoken, a.excused = true, 0
	if h.heard != a.mine {
		if !a.alive {
			a.deadline = now + a.patience.of(a.detect, now)
		}
		return false
	}
	up = !a.proven
	a.proven = true
	if up {
		a.patience.proved(a.detect, now)
	}
	a.deadline = now + a.patience.of(a.detect, now)
	a.verdict(true, whyUp, now)
	return up
}

// hello takes note of what only a hello says, after admit.
func (a *adjacency) hello(h *header, m hello, multiplier int, next func() uint64, now time.Duration) {
	a.detect = min(max(m.interval, minInterval)*time.Duration(max(m.multiplier, multiplier)), maxDetection)
	switch {
	case h.heard != a.mine:
		if a.alive && m.down {
			theirs, window := a.theirs, a.window
			a.lose(whyDeaf, next(), now)
			a.theirs, a.window, a.deadline = theirs, window, now+a.patience.of(a.detect, now)
		}
	case m.leaving:
		a.lose(whyLeft, next(), now)
		a.spoken = false
		a.verdict(true, whyLeft, now)
	default:
		a.deadline = now + a.patience.of(a.detect, now)
	}
}
