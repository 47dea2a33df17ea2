package service

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// jumpy is a machine whose clock jumps.
type jumpy struct {
	boots int
	up    time.Duration
	wall  time.Time
}

func (w *jumpy) machine() machine {
	return machine{boot: fmt.Sprint("boot ", w.boots), wall: func() time.Time { return w.wall }, up: func() time.Duration { return w.up }}
}

func (w *jumpy) pass(d time.Duration) { w.up, w.wall = w.up+d, w.wall.Add(d) }

// However the machine's clock jumps, and however often the program starts again: the
// time never goes back, and follows when it is set ahead.
func TestClock_neverGoesBack(t *testing.T) {
	jumps := []time.Duration{-24 * time.Hour, -time.Hour, -time.Second, 0, time.Second, time.Hour, 24 * time.Hour}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &jumpy{wall: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), up: time.Minute}
		file := filepath.Join(t.TempDir(), "clock")
		c := openClock(file, w.machine())
		last := c.Now()
		for i := range 300 {
			w.pass(time.Duration(1 + random.Int64N(int64(10*time.Second))))
			if random.IntN(3) == 0 {
				w.wall = w.wall.Add(jumps[random.IntN(len(jumps))])
			}
			if random.IntN(3) == 0 { // killed and started
				c = openClock(file, w.machine())
			}
			now := c.Now()
			if !now.After(last) {
				t.Fatalf("seed %d, step %d: %v after %v", seed, i, now, last)
			}
			if now.Before(w.wall.Add(-slack)) {
				t.Fatalf("seed %d, step %d: %v, and the machine has %v", seed, i, now, w.wall)
			}
			last = now
		}
		if c.err != nil {
			t.Fatal(c.err)
		}
	}
}

// Of another boot nothing is taken over: the time since then is another one.
func TestClock_beginsAnewAfterABoot(t *testing.T) {
	w := &jumpy{wall: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), up: time.Minute}
	file := filepath.Join(t.TempDir(), "clock")
	openClock(file, w.machine())
	w.boots++
	w.wall = w.wall.Add(-24 * time.Hour)
	if now := openClock(file, w.machine()).Now(); !now.Equal(w.wall) {
		t.Errorf("%v, want %v", now, w.wall)
	}
}

// What is in the file is anybody's.
func TestClock_badFiles(t *testing.T) {
	w := &jumpy{wall: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), up: time.Minute}
	dir := t.TempDir()
	for i, text := range []string{"", "{", `{"boot":"boot 0","booted":"x"}`, `{"boot":1}`, strings.Repeat("a", 1<<20)} {
		file := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := openClock(file, w.machine()); !c.Now().Equal(w.wall) || c.err != nil {
			t.Errorf("%.20q: %v, %v", text, c.Now(), c.err)
		}
	}
	// Nowhere to write: it lives without, and says so.
	c := openClock(filepath.Join(dir, "none", "clock"), w.machine())
	if c.err == nil || !c.Now().Equal(w.wall) {
		t.Errorf("%v, %v", c.Now(), c.err)
	}
	if _, err := OpenClock(filepath.Join(dir, "none", "clock")); err == nil {
		t.Error("OpenClock: no error")
	}
	if c, err := OpenClock(filepath.Join(dir, "real")); err != nil || time.Since(c.Now()).Abs() > time.Second {
		t.Errorf("OpenClock: %v, %v", c.Now(), err)
	}
}
