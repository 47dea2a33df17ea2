package service

import (
	"fmt"
	"os"
	"syscall"

	"weft/internal/event"
	"weft/internal/eventlog"
)

// Loop is the part that the loops of weft's daemons have in common: signals, the watchdog,
// and messages to systemd and the log. The goroutine that owns the daemon's state selects
// on these and on all other events:
//
//	due, stop := l.Due()
//	defer stop()
//	for {
//		if l.Pending(signals) {
//			return nil
//		}
//		select {
//		case <-ctx.Done():
//			return nil
//		case s := <-signals:
//			if l.Signal(s) {
//				return nil
//			}
//		case <-due:
//			l.Watch()
//		case ...
//		}
//	}
//
// Only that goroutine may call Pending, Signal and Watch.
type Loop struct {
	Notifier
	Log *eventlog.Log
	// Summary says in a line what the daemon does.
	Summary func() string
	// Reload reads the configuration again and applies all of it or nothing. It returns
	// what is in force then.
	Reload func() (string, error)
	// Alive reports whether the daemon works, and logs the reason if not. Then systemd
	// restarts the daemon.
	Alive func() bool
}

// Begin tells systemd and the log that the daemon is at work.
func (l *Loop) Begin() {
	summary := l.Summary()
	l.Ready(summary)
	l.Log.Info(event.Started, summary)
	if note := SharedUser(); note != "" {
		l.Log.Info(event.Limited, "note: "+note)
	}
}

// Signal takes a signal. SIGHUP makes it call Reload; any other ends the daemon.
func (l *Loop) Signal(s os.Signal) (end bool) {
	if s != syscall.SIGHUP {
		l.Log.Info(event.Stopping, fmt.Sprintf("%v: stopping", s), "signal", s.String())
		return true
	}
	l.Watch() // so that it has the watchdog's whole time
	l.Reloading()
	if now, err := l.Reload(); err != nil {
		l.Log.Warn(event.ReloadRefused, fmt.Sprintf("reload refused, all stays as it is: %v", err), "why", err.Error())
	} else {
		l.Log.Infof(event.Reloaded, "reloaded: %s", now)
	}
	l.Ready(l.Summary())
	return false
}

// Pending takes a signal that is there already, as Signal does. Call it before each select:
// that chooses at random among what is ready, and other events may be ready all the time
// and take long.
func (l *Loop) Pending(signals <-chan os.Signal) (end bool) {
	select {
	case s := <-signals:
		return l.Signal(s)
	default:
		return false
	}
}

// Watch tells the watchdog, if there is one, that the daemon works, if Alive says so.
func (l *Loop) Watch() {
	if l.Every() > 0 && l.Alive() {
		l.Watchdog()
	}
}
