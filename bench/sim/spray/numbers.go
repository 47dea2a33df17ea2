package spray

import (
	"time"

	"weft/flowcell"
)

// Numbers is a sender's state of a flow whose paths switches choose: enough to write a
// Number into each data packet. If the switches' unit is the flowcell, the host cuts
// flowcells as with the hosts' policies, and switches find their borders by the numbers:
// "a sending host adds a sequentially increasing flowcell ID into each packet" (Luopan
// §3.2). The owner may move it.
type Numbers struct {
	cutter flowcell.Cutter
	count  flowcell.Number
}

// NewNumbers returns the Numbers of a flow that has not begun, by its hash.
func NewNumbers(hash uint64) Numbers {
	return Numbers{cutter: flowcell.NewCutter(hash)}
}

// Next returns the Number of a data packet with payload bytes from seq on, if switches
// choose a path for each u. If u is not the flowcell, it counts packets.
func (f *Numbers) Next(u flowcell.Unit, seq uint32, payload int, now time.Duration) flowcell.Number {
	if !u.Numbers() {
		f.count = f.count.Count()
		return f.count
	}
	n, _ := f.cutter.Next(u, seq, payload, 1, now)
	return n
}
