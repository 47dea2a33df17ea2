package service

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals relays SIGHUP and the signals that end a daemon, one after the other, to the
// channel that it returns, until stop is called. A daemon may be busy for seconds. However
// many SIGHUPs come meanwhile, they count as one, and a signal that ends the daemon comes
// before it and is never lost. A channel of signal.Notify alone drops what comes last, when
// it is full.
func Signals() (signals <-chan os.Signal, stop func()) {
	reload, end := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	out, stopped := make(chan os.Signal), make(chan struct{})
	go relaySignals(out, reload, end, stopped)
	return out, func() {
		signal.Stop(reload)
		signal.Stop(end)
		close(stopped)
	}
}

// relaySignals passes on what comes by two channels. What comes by end overtakes.
func relaySignals(out chan<- os.Signal, reload, end <-chan os.Signal, stopped <-chan struct{}) {
	for {
		var s os.Signal
		select {
		case s = <-end:
		case s = <-reload:
		case <-stopped:
			return
		}
		for sent := false; !sent; {
			select {
			case out <- s:
				sent = true
			case s = <-end:
			case <-stopped:
				return
			}
		}
	}
}
