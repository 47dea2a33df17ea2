// Package eventlog writes events (package event) to a log/slog Logger: a daemon's own, by the
// handlers of this package, or that of the program that weft is embedded in.
package eventlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weft/internal/event"
)

// Key is the attribute that has an event's name.
const Key = "event"

// Log writes events, no more of each name than event.Limiter allows. Its methods are safe for
// concurrent use, and no lock is held while the Logger's handler runs: it may call them, too. A nil
// *Log writes nothing.
type Log struct {
	to      *slog.Logger
	now     func() time.Duration
	machine bool // now is the machine's

	mu      sync.Mutex
	limiter event.Limiter
	timer   *time.Timer // expires when something suppressed may have to be told; nil: nothing has
	closed  bool
}

// New returns a Log; nil if to is nil. now is the time to live in, and whoever gives it calls
// Flush; nil: the machine's, and nobody needs to.
func New(to *slog.Logger, now func() time.Duration) *Log {
	if to == nil {
		return nil
	}
	l := &Log{to: to, now: now}
	if now == nil {
		start := time.Now()
		l.now, l.machine = func() time.Duration { return time.Since(start) }, true
	}
	return l
}

// Say writes an event: its message for people, then its attributes, name and value in turns.
func (l *Log) Say(level slog.Level, name event.Name, message string, attributes ...any) {
	if l == nil || !l.to.Enabled(context.Background(), level) {
		return
	}
	l.mu.Lock()
	ok, suppressed := l.limiter.Allow(name, l.now())
	if !ok {
		l.await()
	}
	l.mu.Unlock()
	if !ok {
		return
	}
	if suppressed > 0 {
		attributes = append(attributes[:len(attributes):len(attributes)], "suppressed", suppressed)
	}
	l.to.Log(context.Background(), level, message, append(attributes[:len(attributes):len(attributes)], Key, string(name))...)
}

// Info writes an event that is as it should be.
func (l *Log) Info(name event.Name, message string, attributes ...any) {
	l.Say(slog.LevelInfo, name, message, attributes...)
}

// Warn writes an event that somebody may have to do something about.
func (l *Log) Warn(name event.Name, message string, attributes ...any) {
	l.Say(slog.LevelWarn, name, message, attributes...)
}

// Infof is Info with a message that is all there is to say.
func (l *Log) Infof(name event.Name, format string, args ...any) {
	l.Info(name, fmt.Sprintf(format, args...))
}

// Warnf is Warn with a message that is all there is to say.
func (l *Log) Warnf(name event.Name, format string, args ...any) {
	l.Warn(name, fmt.Sprintf(format, args...))
}

// await starts the timer, if it does not run. The lock is held.
func (l *Log) await() {
	if l.machine && !l.closed && l.timer == nil {
		l.timer = time.AfterFunc(event.TellAfter, l.expired)
	}
}

func (l *Log) expired() {
	l.flush(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer = nil; l.limiter.Suppresses() {
		l.await()
	}
}

// Flush tells what was suppressed, if it is some time ago. Call it now and then if the Log has a
// time of its own.
func (l *Log) Flush() {
	if l != nil {
		l.flush(0)
	}
}

// Close tells what was suppressed, at once. What comes later is still written, but of what is
// suppressed then nothing is told. It does not wait for a handler that another goroutine is in.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.flush(event.TellAfter)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
}

// flush tells what is to be told some time ahead.
func (l *Log) flush(ahead time.Duration) {
	l.mu.Lock()
	var due []event.Count
	if !l.closed {
		due = l.limiter.Due(l.now() + ahead)
	}
	l.mu.Unlock()
	for _, c := range due {
		l.to.Warn(fmt.Sprintf("%d events of the name %s were not told", c.N, c.Name), "of", string(c.Name), "count", c.N, Key, string(event.Suppressed))
	}
}
