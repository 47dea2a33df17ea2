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
	cutter flowcell.Cutter
	count  flowcell.Number
}

// NewNumbers returns those of a flow that has not begun, by its hash.
func NewNumbers(hash uint64) Numbers {
	return Numbers{cutter: flowcell.NewCutter(hash)}
}

// Next returns the Number of a packet of data with so much payload from seq on, if
// switches choose a path for each u. Where it tells of no flowcell it counts packets.
func (f *Numbers) Next(u flowcell.Unit, seq uint32, payload int, now time.Duration) flowcell.Number {
	if !u.Numbers() {
		f.count = f.count.Count()
		return f.count
	}
	n, _ := f.cutter.Next(u, seq, payload, 1, now)
	return n
}
