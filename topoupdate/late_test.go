package topoupdate

import (
	"testing"
	"time"
)

func (c *couple) dead() (n int) {
	for _, p := range c.agent.Neighbours() {
		if !p.Alive {
			n++
		}
	}
	return n
}

// A switch that could not run for a while does not blame its neighbours, whose
// hellos may have come meanwhile.
func TestAgent_lateDoesNotBlame(t *testing.T) {
	c := newCouple(t, "fat-tree:k=4", "a0.2", Keys{})
	before := c.agent.Stats().Late
	c.tick(c.now + 4*time.Second) // the detection time is 3
	if n := c.dead(); n > 0 {
		t.Fatalf("%d neighbours dead at once", n)
	}
	c.greet()
	for range 20 {
		c.tick(c.now + 500*time.Millisecond)
		c.greet()
	}
	if n := c.dead(); n > 0 || c.agent.Stats().Late != before+1 {
		t.Fatalf("%d neighbours dead; late %d times, want 1", n, c.agent.Stats().Late-before)
	}
	// In time, silence counts.
	for range 8 {
		c.tick(c.now + 500*time.Millisecond)
	}
	if n := c.dead(); n != 4 {
		t.Errorf("%d neighbours dead, want 4", n)
	}
}

// One that is always late finds out all the same.
func TestAgent_alwaysLateBlamesInTheEnd(t *testing.T) {
	c := newCouple(t, "fat-tree:k=4", "a0.2", Keys{})
	at := c.now
	for c.dead() < 4 {
		if c.tick(c.now + 2*time.Second); c.now > at+15*time.Second {
			t.Fatalf("%d of 4 neighbours dead after %v of silence", c.dead(), c.now-at)
		}
	}
	if c.now < at+6*time.Second {
		t.Errorf("dead after %v already", c.now-at)
	}
}
