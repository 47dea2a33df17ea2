package reorder

import "fmt"

// checker checks that every packet that goes in comes out once.
type checker struct {
	in      []arrival
	ordered bool     // of no flow may anything come behind what was sent later
	came    []uint64 // bits: what was delivered
	next    []uint32 // by flow: above the highest segment delivered
	// Since begin:
	delivered, outOfOrder int
}

func newChecker(in []arrival, flows int, ordered bool) *checker {
	return &checker{in: in, ordered: ordered, came: make([]uint64, (len(in)+63)/64), next: make([]uint32, flows)}
}

// begin counts anew.
func (c *checker) begin() { c.delivered, c.outOfOrder = 0, 0 }

// take is told what was delivered, of the first pushed packets.
func (c *checker) take(names []int, pushed int) error {
	for _, n := range names {
		if n < 0 || n >= pushed {
			return fmt.Errorf("delivered packet %d, of %d pushed", n, pushed)
		}
		if c.came[n/64]&(1<<(n%64)) != 0 {
			return fmt.Errorf("delivered packet %d twice", n)
		}
		c.came[n/64] |= 1 << (n % 64)
		a := c.in[n]
		if a.segment < c.next[a.flow] {
			if c.ordered {
				return fmt.Errorf("delivered segment %d of flow %d after segment %d", a.segment, a.flow, c.next[a.flow]-1)
			}
			c.outOfOrder++
		} else {
			c.next[a.flow] = a.segment + 1
		}
		c.delivered++
	}
	return nil
}

// end fails if not all of the first pushed packets came.
func (c *checker) end(pushed int) error {
	for n := range pushed {
		if c.came[n/64]&(1<<(n%64)) == 0 {
			return fmt.Errorf("packet %d was pushed and never delivered", n)
		}
	}
	return nil
}
