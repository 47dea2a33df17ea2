package world

import (
	"time"

	"weft/stack"
)

// process is the time of a process that can be stopped, as SIGSTOP does, and killed:
// while it is stopped its timers do not expire, but all at once when it goes on.
type process struct {
	clock   *clock
	stopped bool
	dead    bool
	late    []func() // what was due while it was stopped
}

var _ stack.Clock = (*process)(nil)

func (p *process) Now() time.Duration { return p.clock.Now() }

func (p *process) AfterFunc(d time.Duration, f func()) stack.Timer {
	return p.clock.AfterFunc(d, func() { p.do(f) })
}

// do has the process call f: now, or when it goes on.
func (p *process) do(f func()) {
	switch {
	case p.dead:
	case p.stopped:
		p.late = append(p.late, f)
	default:
		f()
	}
}

func (p *process) stop() { p.stopped = true }

func (p *process) resume() {
	p.stopped = false
	late := p.late
	p.late = nil
	for _, f := range late {
		p.do(f)
	}
}

func (p *process) kill() { p.dead, p.late = true, nil }
