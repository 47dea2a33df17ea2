package main

import (
	"fmt"
	"os"
	"time"

	"weft/bench/papers"
)

// progress reports on standard error, if that is a terminal, what takes longer
// than a second. Its methods are not safe for concurrent use.
type progress struct {
	what  string
	start time.Time
	next  time.Time
	shown int // letters on the line
}

func newProgress(what string) *progress {
	next := time.Now().Add(time.Second)
	if s, err := os.Stderr.Stat(); err != nil || s.Mode()&os.ModeCharDevice == 0 {
		next = time.Now().AddDate(1, 0, 0) // nobody looks
	}
	return &progress{what: what, start: time.Now(), next: next}
}

func (p *progress) set(done, total int) {
	p.show(func(time.Duration) string { return fmt.Sprintf("%d%%", 100*done/total) })
}

// units says how many of a batch's units are done, and about how long the rest takes.
func (p *progress) units(b papers.Progress) {
	p.show(func(elapsed time.Duration) string {
		s := fmt.Sprintf("%d of %d, %d%%", b.Done, b.Units, b.PerMille/10)
		if left := timeLeft(elapsed, b); left > 0 {
			s += ", about " + left.String() + " left"
		}
		return s
	})
}

// timeLeft is how long the rest of a batch takes, if it goes on as since the beginning; 0
// while too little is done to tell.
func timeLeft(elapsed time.Duration, b papers.Progress) time.Duration {
	const least = 5 // of a thousand
	done := b.PerMille - b.Kept
	if done < least {
		return 0
	}
	left := elapsed * time.Duration(1000-b.PerMille) / time.Duration(done)
	if left > 2*time.Minute {
		return left.Round(time.Minute)
	}
	return left.Round(time.Second)
}

func (p *progress) show(text func(elapsed time.Duration) string) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(200 * time.Millisecond)
	line := p.what + ": " + text(now.Sub(p.start))
	fmt.Fprintf(os.Stderr, "\r%-*s", p.shown, line)
	p.shown = max(len(line), 1)
}

// clear takes the line away, for others to write there.
func (p *progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(os.Stderr, "\r%*s\r", p.shown, "")
		p.shown = 0
	}
}

func (p *progress) end() {
	if p.shown > 0 {
		fmt.Fprintln(os.Stderr)
	}
}
