package dataplane

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"weft/conga"
	"weft/flowcell"
	"weft/topology"
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

// With more paths than tags, a tag is a first hop: it is left as a whole. Where all live paths have
// one tag, the path is left if there is another.
func TestChoose_timeoutLeavesTheTag(t *testing.T) {
	oneTag := []string{"e0.0-a0.6", "e0.0-a0.7", "e0.0-a0.8", "e0.0-a0.9"}
	onePath := append(slices.Clone(oneTag), "a0.5-c1.2", "a0.5-c1.3", "a0.5-c1.4", "a0.5-c1.5")
	for name, c := range map[string]struct {
		down        []string
		paths, tags int
	}{"five tags": {nil, 25, 5}, "one tag": {oneTag, 5, 1}, "one path": {onePath, 1, 1}} {
		t.Run(name, func(t *testing.T) {
			fabric, err := topology.Parse("fat-tree:k=10,hosts=1")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.down {
				l, err := fabric.LinkByName(name)
				if err != nil {
					t.Fatal(err)
				}
				fabric = fabric.Without(l.ID)
			}
			e := testEgress(t, fabric, "conga")
			data := packetTo(fabric.EmbeddedAddr(topology.NodeID(fabric.NumHosts()-1)), 1)
			var pkt flowcell.Packet
			if err := pkt.Parse(data); err != nil {
				t.Fatal(err)
			}
			now := time.Second
			wrapOne(t, e, data, now)
			g := e.paths.to(pkt.Flow.Dst).group
			if len(g.Live) != c.paths {
				t.Fatalf("%d live paths, want %d", len(g.Live), c.paths)
			}
			taken := make(map[int]bool)
			for i := range 300 {
				was := e.flows.Get(&pkt.Flow, now).via.index
				now += time.Second
				e.clock = &stillClock{Time: now}
				for tag := range uint8(c.tags) {
					m := conga.Mark{Feedback: true, Tag: tag, Metric: 1} // the last is the best
					if tag == g.Tags[was] {
						m.Metric = 0
					}
					e.receiveMarks([]arrivedMark{{pkt.Flow.Dst, m.Put()}})
				}
				wrapOne(t, e, data, now)
				is := e.flows.Get(&pkt.Flow, now).via.index
				switch {
				case c.paths == 1 && is != was,
					c.paths > 1 && is == was,
					c.tags > 1 && g.Tags[is] == g.Tags[was]:
					t.Fatalf("timeout %d: from path %d to %d, with tags %d and %d", i, was, is, g.Tags[was], g.Tags[is])
				}
				taken[is] = true
			}
			if len(taken) != c.paths {
				t.Errorf("paths taken: %v", taken)
			}
		})
	}
}
