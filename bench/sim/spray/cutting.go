package spray

import (
	"time"

	"weft/flowcell"
)

// cutting is how a sender cuts a flow's data into units, whoever chooses their paths.
type cutting struct {
	cutter flowcell.Cutter
	last   time.Duration // when data was sent
}

// leastTimeout is the pause after which what is sent again is taken to be so because
// of a timeout, as package stack has it.
const leastTimeout = 5 * time.Millisecond

// next tells of a packet of data what Cutter.Next does; again: it has been sent
// before.
func (c *cutting) next(u flowcell.Unit, payload int, again bool, now time.Duration) (n flowcell.Number, begins bool) {
	// What is sent again after a timeout would follow what was lost into the hole,
	// timeout after timeout, until the unit is full.
	if again && now-c.last > leastTimeout {
		c.cutter.End()
	}
	c.last = now
	return c.cutter.Next(u, payload, 1, now)
}
