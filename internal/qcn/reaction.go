package qcn

import (
	"errors"
	"fmt"
	"time"
)

// cut is G_d: the strongest feedback halves the rate.
const cut = 2 * (MaxLevel + 1)

// Config is that of reaction points. Rates are in bytes a second.
type Config struct {
	// Floor and Limit bound the rate. From Limit on the flow is not limited any more. Floor
	// must be more than 0 and less than Limit.
	Floor, Limit float64

	// Increase is R_AI, by how much the target rate rises in each cycle of active increase.
	// 0 is Limit/2000: 5 Mbit/s at 10 Gbit/s, as the standard has it.
	Increase float64
	// Hyper is R_HAI, by how much it rises at least in each cycle of hyper-active increase.
	// 0 is ten times Increase, as the standard has it.
	Hyper float64

	// Cycle is the byte counter's: a cycle ends when so many bytes were sent, after fast
	// recovery Active. 0 is 150,000, a hundred packets.
	Cycle uint64
	// Active is the byte counter's cycle after fast recovery. 0 is half of Cycle.
	Active uint64
	// Timer is the timer's cycle, after fast recovery half of it. 0 is 15 ms. Less than 0
	// means that there is none: the byte-counter-only model of the thesis, which has no
	// hyper-active increase.
	Timer time.Duration
	// Recovery is how many cycles fast recovery has. 0 is 5.
	Recovery int
}

// complete returns the configuration with its defaults.
func (c Config) complete() (Config, error) {
	if !(c.Floor > 0 && c.Floor < c.Limit && c.Limit <= 1e12) {
		return c, fmt.Errorf("qcn: Floor is %g and Limit %g bytes/s; Floor must be more than 0 and less than Limit, which is at most 1e12", c.Floor, c.Limit)
	}
	if c.Increase == 0 {
		c.Increase = c.Limit / 2000
	}
	if c.Hyper == 0 {
		c.Hyper = 10 * c.Increase
	}
	if c.Cycle == 0 {
		c.Cycle = 150_000
	}
	if c.Active == 0 {
		c.Active = max(c.Cycle/2, 1)
	}
	if c.Timer == 0 {
		c.Timer = 15 * time.Millisecond
	}
	if c.Recovery == 0 {
		c.Recovery = 5
	}
	if !(c.Increase > 0 && c.Hyper > 0) || c.Recovery < 0 {
		return c, errors.New("qcn: Increase, Hyper and Recovery must be 0 or more")
	}
	return c, nil
}

// Reaction is the reaction point of a flow. It begins with its first feedback and ends when it
// is Done.
type Reaction struct {
	config  Config
	current float64 // CR, the rate
	target  float64 // TR

	sent   uint64        // bytes of the byte counter's cycle
	due    time.Duration // the end of the timer's cycle
	cycles int           // of the byte counter since the last feedback
	ticks  int           // of the timer
}

// NewReaction returns the reaction point of a flow that sends at a rate, in bytes a second. An
// error names the field of c that is wrong.
func NewReaction(c Config, rate float64, now time.Duration) (*Reaction, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	r := newReaction(c, rate, now)
	return &r, nil
}

// newReaction returns the reaction point of a flow that sends at a rate. c is complete.
func newReaction(c Config, rate float64, now time.Duration) Reaction {
	rate = min(max(rate, c.Floor), c.Limit)
	r := Reaction{config: c, current: rate, target: rate}
	r.begin(now)
	return r
}

// Rate is at which the flow may send, in bytes a second.
func (r *Reaction) Rate() float64 { return r.current }

// Done reports whether the flow is not limited any more.
func (r *Reaction) Done() bool { return r.current >= r.config.Limit }

// Feedback lowers the rate by the level of a message, at most by half, and begins fast
// recovery of what is lost (thesis §5.3.3).
func (r *Reaction) Feedback(level int, now time.Duration) {
	r.target = r.current
	r.current = max(r.config.Floor, r.current*(1-float64(min(level, MaxLevel))/cut))
	r.begin(now)
}

// begin starts fast recovery.
func (r *Reaction) begin(now time.Duration) {
	r.sent, r.cycles, r.ticks = 0, 0, 0
	r.due = now + r.config.Timer
}

// Sent counts bytes that the flow has sent, and raises the rate when a cycle ends.
func (r *Reaction) Sent(bytes uint64) {
	// More than 100 cycles at once, at which the rate is long at its limit, count as that.
	r.sent = min(r.sent+bytes, 100*r.config.Cycle)
	for {
		cycle := r.config.Cycle
		if r.cycles >= r.config.Recovery {
			cycle = r.config.Active
		}
		if r.sent < cycle {
			return
		}
		r.sent -= cycle
		r.cycles++
		r.raise()
	}
}

// Tick raises the rate if the timer is due.
func (r *Reaction) Tick(now time.Duration) {
	if r.config.Timer < 0 {
		return
	}
	for i := 0; now >= r.due; i++ {
		if i == 100 { // the clock has stood: nobody has sent meanwhile
			r.due = now + r.config.Timer
			return
		}
		r.ticks++
		r.raise()
		every := r.config.Timer
		if r.ticks >= r.config.Recovery {
			every /= 2
		}
		r.due += max(every, 1)
	}
}

// raise ends a cycle: half of the way to the target, which rises too after fast recovery.
func (r *Reaction) raise() {
	most, least := max(r.cycles, r.ticks), min(r.cycles, r.ticks)
	switch past := r.config.Recovery; {
	case least > past:
		r.target += r.config.Hyper * float64(least-past)
	case most > past:
		r.target += r.config.Increase
	}
	r.target = min(r.target, 2*r.config.Limit)
	r.current = (r.current + r.target) / 2
}
