package service

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// Whatever comes while a daemon is busy, it hears of a SIGHUP and that it is to end.
func TestSignals_endIsNotLostBehindReloads(t *testing.T) {
	signals, stop := Signals()
	defer stop()
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the kernel joins equal signals that nobody has taken yet
	}
	for range 20 {
		send(syscall.SIGHUP)
	}
	send(syscall.SIGTERM)
	for n := 0; ; n++ {
		select {
		case s := <-signals:
			if s != syscall.SIGTERM {
				continue
			}
			if n > 1 {
				t.Errorf("20 SIGHUPs that nobody took came as %d", n)
			}
			return
		case <-time.After(5 * time.Second):
			t.Fatalf("SIGTERM is lost after %d signals", n)
		}
	}
}

// What ends a daemon comes before a SIGHUP that waits.
func TestSignals_endOvertakes(t *testing.T) {
	out, reload, end, stopped := make(chan os.Signal), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	defer close(stopped)
	go relaySignals(out, reload, end, stopped)
	for _, s := range []struct {
		to     chan os.Signal
		signal os.Signal
	}{{reload, syscall.SIGHUP}, {end, syscall.SIGTERM}} {
		s.to <- s.signal
		for try := 0; try < 1000 && len(s.to) > 0; try++ { // until it is taken
			time.Sleep(time.Millisecond)
		}
	}
	if s := <-out; s != syscall.SIGTERM {
		t.Errorf("first comes %v", s)
	}
}

// A SIGHUP while one is carried out makes for another one: the file may have changed since
// it was read.
func TestSignals_reloadDuringAReload(t *testing.T) {
	signals, stop := Signals()
	defer stop()
	for try := range 3 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-signals:
			if s != syscall.SIGHUP {
				t.Fatalf("signal %v", s)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("SIGHUP %d is lost", try)
		}
	}
}
