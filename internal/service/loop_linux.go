package service

import (
	"log"
	"os"
	"syscall"
)

// Loop is the part of a daemon's loop that weft's daemons have in common: signals, the
// watchdog, and what systemd and the log are told. The rest of what happens, the owner of
// the daemon's state selects from besides:
//
//	due, stop := l.Due()
//	defer stop()
//	for {
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
// Signal and Watch are for that one goroutine.
type Loop struct {
	Notifier
	Log *log.Logger
	// Summary says in a line what the daemon does.
	Summary func() string
	// Reload reads the configuration again and carries it out, all of it or nothing,
	// and says what is in force then.
	Reload func() (string, error)
	// Alive reports whether the daemon works. If not, systemd is to begin it anew; why,
	// it tells the log.
	Alive func() bool
}

// Begin tells systemd and the log that the daemon is at work.
func (l *Loop) Begin() {
	summary := l.Summary()
	l.Ready(summary)
	l.Log.Print(summary)
	if note := SharedUser(); note != "" {
		l.Log.Print("note: ", note)
	}
}

// Signal takes a signal. SIGHUP has the configuration read again; any other ends the
// daemon.
func (l *Loop) Signal(s os.Signal) (end bool) {
	if s != syscall.SIGHUP {
		l.Log.Printf("%v: stopping", s)
		return true
	}
	l.Reloading()
	if now, err := l.Reload(); err != nil {
		l.Log.Printf("reload refused, all stays as it is: %v", err)
	} else {
		l.Log.Printf("reloaded: %s", now)
	}
	l.Ready(l.Summary())
	return false
}

// Watch tells the watchdog that the daemon works, if it does.
func (l *Loop) Watch() {
	if l.Alive() {
		l.Watchdog()
	}
}
