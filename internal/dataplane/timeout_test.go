package dataplane

import (
	"encoding/binary"
	"testing"
	"time"

	"weft/conga"
	"weft/flowcell"
)

// What a timeout sends again leaves the path that it took before, whatever reports say: nothing
// arrives by a dead path, so nobody reports that it is congested. A flowlet of new data keeps to
// the flow's path if that is among the best.
func TestChoose_timeoutLeavesThePath(t *testing.T) {
	e := testEgress(t, fatTree, "conga")
	data := dataPacket(1, 1000)
	var pkt flowcell.Packet
	if err := pkt.Parse(data); err != nil {
		t.Fatal(err)
	}
	now := time.Second
	last := wrapOne(t, e, data, now).bounce
	for i := range 20 { // the last is the best of all each time
		now += time.Second
		was := e.flows.Get(&pkt.Flow, now).via
		e.clock = &stillClock{Time: now}
		for tag := range uint8(4) {
			m := conga.Mark{Feedback: true, Tag: tag, Metric: 7}
			if e.paths.to(pkt.Flow.Dst).group.Tags[was.index] == tag {
				m.Metric = 0
			}
			e.receiveMarks([]arrivedMark{{pkt.Flow.Dst, m.Put()}})
		}
		is := wrapOne(t, e, data, now).bounce
		if is == last {
			t.Fatalf("timeout %d goes by %s again", i, is)
		}
		last = is
	}
	for i := range 20 {
		now += time.Second // all reports are old
		binary.BigEndian.PutUint32(data[24:], pkt.Seq+uint32(i+1)*1000)
		if is := wrapOne(t, e, data, now).bounce; is != last {
			t.Fatalf("flowlet %d goes by %s, the one before by %s", i, is, last)
		}
	}
}
