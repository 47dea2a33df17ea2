package main

import (
	"fmt"
	"os"
	"time"
)

// progress reports on standard error what takes longer than a second. Its
// methods are not safe for concurrent use.
type progress struct {
	what  string
	next  time.Time
	shown bool
}

func newProgress(what string) *progress {
	return &progress{what: what, next: time.Now().Add(time.Second)}
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
