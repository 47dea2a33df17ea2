package main

import (
	"context"
	"io"
	"sync"
	"time"

	"weft/bench/papers"
)

// progress tells how far the long work of a command is, and about how long the rest takes: how is
// up to --progress. The work has parts, one after the other; nil is of work that nobody wants to
// hear of. Its methods are safe for concurrent use.
type progress struct {
	out   *progressOutput
	start time.Time

	mu      sync.Mutex
	next    time.Time // when something is told again
	weights []float64 // of the parts: about what each takes, in any measure
	part    int       // under way, from 0
	within  float64   // how much of it is done, 0 to 1
	kept    float64   // how much of all was done before the start
	doing   string
	detail  string // of what is done within the part
	shown   int    // letters on the terminal's line
	ended   bool
}

// progressState is how far a work is.
type progressState struct {
	doing       string
	part, parts int     // under way, from 1; of so many
	done        float64 // of all, 0 to 1
	elapsed     time.Duration
	left        time.Duration // negative: too little is done to tell
}

// newProgress begins work of one part. ctx is a command's, see longWork.
func newProgress(ctx context.Context, doing string) *progress {
	out, _ := ctx.Value(progressKey{}).(*progressOutput)
	if out == nil || out.mode == progressNone {
		return nil
	}
	p := &progress{out: out, doing: doing, weights: []float64{1}, start: out.now()}
	p.next = p.start.Add(out.first())
	return p
}

// plan says which parts there are, by about how long each takes; begin begins them.
func (p *progress) plan(weights ...float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(weights) > 0 {
		p.weights, p.part = weights, -1
	}
}

// begin ends a part, if one is under way, and begins the next one.
func (p *progress) begin(doing string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.within, p.doing, p.detail = min(p.part+1, len(p.weights)-1), 0, doing, ""
	p.tell(true)
}

// set says how much of the part is done.
func (p *progress) set(done, total int) {
	if p == nil || total <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.within = max(p.part, 0), float64(done)/float64(total)
	p.tell(false)
}

// time is set for a part that takes a known time.
func (p *progress) time(elapsed, total time.Duration) {
	p.set(int(elapsed.Milliseconds()), int(total.Milliseconds()))
}

// of says that so many of a number of equal parts are done, and what is being done; "": the same
// as before.
func (p *progress) of(doing string, done, total int) {
	if p == nil || total <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if doing == "" {
		doing = p.doing
	}
	if len(p.weights) != total {
		p.weights = make([]float64, total)
		for i := range p.weights {
			p.weights[i] = 1
		}
	}
	begun := p.doing != doing
	p.part, p.within, p.doing, p.detail = done, 0, doing, ""
	p.tell(begun)
}

// parts is of for work that is all of one kind.
func (p *progress) parts(done, total int) { p.of("", done, total) }

// units says how far a batch of simulations is.
func (p *progress) units(b papers.Progress) {
	if p == nil || b.Units == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.weights) != b.Units {
		p.weights = make([]float64, b.Units)
	}
	begun := p.part != b.Done
	p.part, p.within, p.kept = b.Done, float64(b.PerMille)/1000, float64(b.Kept)/1000
	p.tell(begun)
}

// beside returns what says how far something is that a part begins with, such as a lab that is
// built for it. It does not move the whole.
func (p *progress) beside(what string) func(done, total int) {
	return func(done, total int) {
		if p == nil || total <= 0 {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.detail = what
		if done >= total {
			p.detail = ""
		}
		p.tell(false)
	}
}

// end says that the work is over, done or not.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		p.out.end(p)
	}
}

// above returns a writer for what is to be read besides, such as notes: they do not get into the
// middle of a bar.
func (p *progress) above(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return aboveBar{p, w}
}

type aboveBar struct {
	p *progress
	w io.Writer
}

// Write is io.Writer's.
func (a aboveBar) Write(b []byte) (int, error) {
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	a.p.out.clear(a.p)
	return a.w.Write(b)
}

// tell tells, if it is time to or a part has begun. The lock is held.
func (p *progress) tell(begun bool) {
	if p.ended {
		return
	}
	now := p.out.now()
	if now.Before(p.next) && !(begun && p.out.tellsBegun()) {
		return
	}
	p.next = now.Add(p.out.every())
	p.out.tell(p, p.state(now))
}

// state is how far the work is.
func (p *progress) state(now time.Time) progressState {
	s := progressState{doing: p.doing, parts: len(p.weights), elapsed: now.Sub(p.start)}
	s.part = min(max(p.part, 0)+1, s.parts)
	if p.detail != "" {
		s.doing += ": " + p.detail
	}
	sum, done := 0.0, 0.0
	for i, w := range p.weights {
		sum += w
		if i < p.part {
			done += w
		}
	}
	switch {
	case sum == 0: // units say how much of all is done
		s.done = p.within
	case p.part < len(p.weights):
		s.done = (done + p.within*p.weights[max(p.part, 0)]) / sum
	default:
		s.done = 1
	}
	s.done = min(max(s.done, 0), 1)
	s.left = timeLeft(s.elapsed, s.done, p.kept)
	return s
}

// leastDone is the part of a work from which on the time of the rest is told.
const leastDone = 0.005

// timeLeft is how long the rest of a work takes, if it goes on as since the beginning, of which so
// much was done before; negative while too little is done to tell.
func timeLeft(elapsed time.Duration, done, kept float64) time.Duration {
	if done-kept < leastDone {
		return -1
	}
	left := time.Duration(float64(elapsed) * (1 - done) / (done - kept))
	if left > 2*time.Minute {
		return left.Round(time.Minute)
	}
	return left.Round(time.Second)
}
