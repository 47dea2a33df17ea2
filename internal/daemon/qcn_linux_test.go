package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Where the address is not there yet or the port is taken, repairs try again, and the log says so
// once; what cannot become right is tried once.
func TestPace_isTriedAgain(t *testing.T) {
	const text = "failures: {keys: [{id: 3, key: a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=}]}\nqcn: {enabled: true}\n"
	for _, c := range []struct {
		err   error
		again bool
	}{{unix.EADDRINUSE, true}, {unix.EADDRNOTAVAIL, true}, {errors.New("no BTF"), false}} {
		w := newWorld(t, 1)
		w.d.config.QCN, w.d.config.Failures.Keys = parsed(t, text).QCN, parsed(t, text).Failures.Keys
		w.unpaced = fmt.Errorf("pacing: %w", c.err)
		for range 3 {
			if err := w.d.repairAll(); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(w.log.String(), "no connection is slowed"); n != 1 || w.d.pacer != nil {
			t.Errorf("%v: logged %d times", c.err, n)
		}
		w.unpaced = nil
		for range 3 {
			if err := w.d.repairAll(); err != nil {
				t.Fatal(err)
			}
		}
		if want := map[bool]int{true: 1}[c.again]; w.pacers != want || (w.d.pacer != nil) != c.again {
			t.Errorf("%v: opened %d times, want %d", c.err, w.pacers, want)
		}
	}
}
