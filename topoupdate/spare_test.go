package topoupdate

import (
	"testing"
	"time"
)

// flap takes a port's carrier away and brings it back; the neighbour shakes hands.
func (c *couple) flap(port int) {
	c.agent.Carrier(port, false, c.now)
	c.drain()
	c.peers[port].session++
	c.agent.Carrier(port, true, c.now)
	c.drain()
	for range 3 {
		c.greet()
	}
}

// A link that comes back is held back, unless there is no other way up.
func TestAgent_holdsNoLastWayBack(t *testing.T) {
	c := newCouple(t, "fat-tree:k=4", "e0.0", Keys{})
	const left, right = 2, 3 // its uplinks
	up := func(port int) bool { return c.agent.Neighbours()[port].Up }
	c.flap(left)
	if n := c.agent.Neighbours()[left]; n.Up || !n.Alive {
		t.Fatalf("a link that has just come back: %+v, want it well and held back", n)
	}
	c.agent.Carrier(right, false, c.now)
	if !up(left) || up(right) {
		t.Errorf("the other uplink has failed; up are %v and %v, want the one that works", up(left), up(right))
	}
	c.tick(c.now + time.Millisecond)
	c.flap(left)
	if !up(left) {
		t.Error("the last way up was held back")
	}
}
