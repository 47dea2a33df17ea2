package event

import (
	"slices"
	"time"
)

// What a Limiter lets pass: of one name Burst at once and one each Every after that.
const (
	Burst = 100
	Every = 100 * time.Millisecond
	// MaxNames bounds the names that a Limiter knows. Further names share one budget.
	MaxNames = 64
	// TellAfter is how long a name is quiet before Due tells what was suppressed.
	TellAfter = 5 * time.Second
)

// Limiter bounds how many events of each name are told. Times count from any start on. The
// zero value is ready. It is not safe for concurrent use.
type Limiter struct {
	names []budget
	other budget
}

// budget is that of a name.
type budget struct {
	name       Name
	full       time.Duration // when it has all of Burst again
	suppressed uint64
	latest     time.Duration // when one was suppressed
}

// Count is how many events of a name were suppressed.
type Count struct {
	Name Name
	N    uint64
}

// Allow reports whether an event is to be told, and if so how many of its name were suppressed
// since the last one that was.
func (l *Limiter) Allow(name Name, now time.Duration) (ok bool, suppressed uint64) {
	b := l.of(name)
	if b.full = max(b.full, now); b.full-now > (Burst-1)*Every {
		b.suppressed++
		b.latest = now
		return false, 0
	}
	b.full += Every
	suppressed, b.suppressed = b.suppressed, 0
	return true, suppressed
}

// Due returns what was suppressed, and ended TellAfter ago, and is not told yet.
func (l *Limiter) Due(now time.Duration) (all []Count) {
	due := func(b *budget) {
		if b.suppressed > 0 && now-b.latest >= TellAfter {
			all = append(all, Count{b.name, b.suppressed})
			b.suppressed = 0
		}
	}
	for i := range l.names {
		due(&l.names[i])
	}
	due(&l.other)
	return all
}

// Suppresses reports whether Due has something to tell, now or later.
func (l *Limiter) Suppresses() bool {
	return l.other.suppressed > 0 || slices.ContainsFunc(l.names, func(b budget) bool { return b.suppressed > 0 })
}

func (l *Limiter) of(name Name) *budget {
	i := slices.IndexFunc(l.names, func(b budget) bool { return b.name == name })
	switch {
	case i >= 0:
		return &l.names[i]
	case len(l.names) == MaxNames:
		l.other.name = "other"
		return &l.other
	}
	l.names = append(l.names, budget{name: name})
	return &l.names[len(l.names)-1]
}
