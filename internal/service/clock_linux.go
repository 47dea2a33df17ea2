package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is a time of day that does not go back while the machine is up, not even from one
// start of a program to the next. It is for numbers that must grow and that others compare,
// such as those of datagrams with a MAC and those of an agent's starts. It is safe for
// concurrent use.
//
// The machine's own clock may be set back at any time. So a file keeps the difference
// between it and the time since boot, and this difference only grows until the next boot. A
// boot forgets it: then the time is the machine's.
type Clock struct {
	from machine
	file string

	mu    sync.Mutex
	state state
	err   error // why the file is not up to date
}

// machine is what a Clock goes by.
type machine struct {
	boot string           // the kernel's ID of this boot
	wall func() time.Time // the time of day
	up   func() time.Duration
}

// state is what is in the file.
type state struct {
	Boot string `json:"boot"`
	// Booted is the time of day of the boot, in nanoseconds since 1970, by the machine's
	// clock when that was furthest ahead.
	Booted int64 `json:"booted"`
}

// slack is how far the machine's clock may get ahead before this one follows, which
// takes a file.
const slack = 100 * time.Millisecond

// OpenClock returns a Clock that keeps its memory in a file, which need not exist. If the
// file cannot be read or written, err says why, and the Clock still works as long as it
// lives.
func OpenClock(file string) (c *Clock, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	c = openClock(file, machine{boot: strings.TrimSpace(string(boot)), wall: time.Now, up: sinceBoot})
	return c, errors.Join(err, c.err)
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // cannot fail
	return time.Duration(t.Nano())
}

func openClock(file string, from machine) *Clock {
	c := &Clock{from: from, file: file}
	b, err := readSmall(file)
	var had state
	if err == nil && json.Unmarshal(b, &had) == nil && had.Boot == from.boot {
		c.state = had
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.err = fmt.Errorf("steady clock: %w", err)
	}
	c.state.Boot = from.boot
	c.Now()
	return c
}

// readSmall reads a file that somebody else may have put there.
func readSmall(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 1000)
	n, _ := f.Read(b)
	return b[:n], nil
}

// Now returns the time of day: the machine's, or what that would be if nobody had set it
// back.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.from.up()
	if booted := c.from.wall().UnixNano() - int64(up); booted > c.state.Booted {
		ahead := booted - c.state.Booted
		if c.state.Booted == 0 || time.Duration(ahead) > slack {
			c.state.Booted = booted
			c.err = c.write()
		}
	}
	return time.Unix(0, c.state.Booted+int64(up))
}

// write has the file say what is known before anybody uses it.
func (c *Clock) write() error {
	b, err := json.Marshal(c.state)
	if err == nil {
		tmp := c.file + ".new"
		os.Remove(tmp)
		var f *os.File
		if f, err = os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600); err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Close())
		}
		if err == nil {
			err = os.Rename(tmp, c.file)
		}
	}
	if err != nil {
		return fmt.Errorf("steady clock: %w", err)
	}
	return nil
}
