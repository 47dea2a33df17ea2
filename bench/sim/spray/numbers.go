package spray

import (
	"time"

	"weft/flowcell"
)

// Numbers is what a sender keeps of a flow where switches choose its paths: enough to
// write a Number into each packet of data. Where the switches' unit is the flowcell it
// is the host that cuts, as with the hosts' policies, and switches find its borders by
// the numbers: "a sending host adds a sequentially increasing flowcell ID into each
// packet" (Luopan §3.2). The owner may move it.
type Numbers struct {
	cutting
	count flowcell.Number
}

// NewNumbers returns those of a flow that has not begun, by its hash.
func NewNumbers(hash uint64) Numbers {
	return Numbers{cutting: cutting{cutter: flowcell.NewCutter(hash)}}
}

// Next returns the Number of a packet of data with so much payload, if switches choose
// a path for each u; again: it has been sent before. Where it tells of no flowcell it
// counts packets.
func (f *Numbers) Next(u flowcell.Unit, payload int, again bool, now time.Duration) flowcell.Number {
	if !u.Numbers() {
		f.count = f.count.Count()
		return f.count
	}
	n, _ := f.next(u, payload, again, now)
	return n
}
