package main

import (
	"fmt"
	"os"
	"time"
)

// progress reports on standard error, if that is a terminal, what takes longer
// than a second. Its methods are not safe for concurrent use.
type progress struct {
	what  string
	next  time.Time
	shown bool
}

func newProgress(what string) *progress {
	next := time.Now().Add(time.Second)
	if s, err := os.Stderr.Stat(); err != nil || s.Mode()&os.ModeCharDevice == 0 {
		next = time.Now().AddDate(1, 0, 0) // nobody looks
	}
	return &progress{what: what, next: next}
}

func (p *progress) set(done, total int) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(200 * time.Millisecond)
	p.shown = true
	fmt.Fprintf(os.Stderr, "\r%s: %d%%", p.what, 100*done/total)
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprintln(os.Stderr)
	}
}
