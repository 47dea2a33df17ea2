package resequencer_test

import (
	"fmt"
	"net/netip"
	"time"

	"weft/flowcell"
	"weft/resequencer"
)

// Segments that arrive out of order are held until the hole before them is filled, or
// their time is up.
func Example() {
	b := resequencer.New[string](resequencer.Config{Discipline: resequencer.Sequence, Hold: 10 * time.Millisecond})
	flow := flowcell.FiveTuple{Proto: flowcell.ProtoTCP, SrcPort: 1234, DstPort: 80,
		Src: flowcell.AddressFrom(netip.MustParseAddr("10.0.0.2")), Dst: flowcell.AddressFrom(netip.MustParseAddr("10.3.1.3"))}
	segment := func(n uint32) *flowcell.Packet {
		return &flowcell.Packet{Flow: flow, Length: 1500, Seq: n * 1460, Payload: 1460}
	}
	fmt.Println(b.Push(segment(0), "0", 0, nil))
	fmt.Println(b.Push(segment(2), "2", 1*time.Millisecond, nil))
	fmt.Println(b.Push(segment(1), "1", 2*time.Millisecond, nil))

	fmt.Println(b.Push(segment(4), "4", 3*time.Millisecond, nil)) // 3 is lost
	due, _ := b.NextDeadline()
	fmt.Println(b.Expire(due, nil), "at", due)
	// Output:
	// [0]
	// []
	// [1 2]
	// []
	// [4] at 13ms
}
