package hostprog

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
)

// What a run that was killed has left limited is freed also where nothing is paced any more.
// Programs' own rates stay.
func TestFreeLeftPaced(t *testing.T) {
	inNewNamespace(t, func() {
		if n, err := FreeLeftPaced(); n != 0 || err != nil {
			t.Errorf("%d, %v where there is no connection", n, err)
		}
		p, err := OpenPacer()
		must(err)
		s, mapped, own := newStream(t), newMappedStream(t), newStream(t)
		own.option(t, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1_000_000)
		})
		must(p.Limit(s.key, 50_000), p.Limit(mapped.key, 50_000), p.Walk(), p.close()) // as a crash does
		if s, m := s.highest(t), mapped.highest(t); s > 50_000 || m > 50_000 {
			t.Errorf("limited to %d and %d", s, m)
		}
		if n, err := FreeLeftPaced(); n != 2 || err != nil {
			t.Errorf("%d, %v; want 2", n, err)
		}
		if s, m, o := s.highest(t), mapped.highest(t), own.highest(t); s != 1<<32-1 || m != 1<<32-1 || o != 1_000_000 {
			t.Errorf("%d, %d and %d afterwards", s, m, o)
		}
		if n, err := FreeLeftPaced(); n != 0 || err != nil {
			t.Errorf("%d, %v the second time", n, err)
		}
	})
}

// What a run that was killed has left limited, the next one frees. It takes over what was
// loaded before privileges were dropped, as often as it is opened.
func TestPacer_leastCapabilities(t *testing.T) {
	inNewNamespace(t, func() {
		first, err := OpenPacer()
		must(err)
		s, own := newStream(t), newStream(t)
		own.option(t, func(fd int) (int, error) {
			return 0, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 1_000_000)
		})
		must(first.Limit(s.key, 50_000), first.Walk(), first.close()) // as a crash does
		if got := s.highest(t); got > 50_000 {
			t.Errorf("%d", got)
		}
		variable, err := KeepPacer()
		must(err)
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
		TakePacer()
		defer inherited.take(nil)
		must(kerneltest.WithCapabilities(func() error {
			once, err := OpenPacer()
			if err != nil {
				return err
			}
			must(once.Close())
			p, err := OpenPacer()
			if err != nil {
				return err
			}
			if s, o := s.highest(t), own.highest(t); s != 1<<32-1 || o != 1_000_000 {
				t.Errorf("%d and %d after the start", s, o)
			}
			err = errors.Join(p.Limit(s.key, 70_000), p.Walk())
			if got := s.highest(t); got > 70_000 {
				t.Errorf("%d", got)
			}
			return errors.Join(err, p.Close())
		}, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF))
		if got := s.highest(t); got != 1<<32-1 {
			t.Errorf("%d afterwards", got)
		}
	})
}
