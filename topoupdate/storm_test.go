package topoupdate

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// A million messages in one second: repeated ones, forged ones, true ones with
// ever new sequence numbers. What is kept and what is sent is bounded, and a
// failure still gets through.
func TestReceive_stormLeavesMemoryAndNeighboursAlone(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	c := newCouple(t, "fat-tree:k=4", "c1.1", Keys{})
	r := rand.New(rand.NewPCG(4, 4))
	repeated := c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{{originator: int(c.peers[0].Peer), version: version{1, 1}, down: []uint64{1}}}})
	garbage := make([]byte, 200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c.sent = 0
	start := c.now
	for i := range n {
		c.now = start + time.Duration(i)*time.Second/time.Duration(n)
		switch i % 4 {
		case 0:
			b := repeated // with a new counter: a neighbour gone mad, not a replay
			binary.BigEndian.PutUint64(b[atCounter:], c.peers[0].counter)
			c.peers[0].counter++
			c.agent.Receive(0, b, c.now)
		case 1:
			for j := range garbage {
				garbage[j] = byte(r.Uint32())
			}
			c.agent.Receive(r.IntN(5)-1, garbage, c.now)
		case 2: // of all switches, ever newer, ever different
			id := c.top.NumHosts() + c.top.NumHosts()/2 + r.IntN(8)
			c.agent.Receive(1, c.message(1, &message{header: header{kind: typeUpdate}, entries: []testEntry{
				{originator: id, version: version{2, uint32(i)}, down: []uint64{uint64(r.IntN(16))}}}}), c.now)
		case 3: // our own, from the future
			c.agent.Receive(2, c.message(2, &message{header: header{kind: typeUpdate}, entries: []testEntry{
				{originator: int(c.self), version: version{9, uint32(i)}, down: []uint64{1}}}}), c.now)
		}
		if i%16 == 0 {
			c.agent.Topology()
			c.drain()
		}
	}
	// Each port sends a message per Pace and one burst.
	if most := 4 * (1000 + paceBurst + 1 + 8); c.sent > most {
		t.Errorf("%d messages in a second by 4 ports, at most %d", c.sent, most)
	}
	for _, nb := range c.agent.Neighbours() {
		if nb.Queued > c.agent.fabric.numSwitches() {
			t.Errorf("%d entries wait at a port", nb.Queued)
		}
	}
	if n := len(c.agent.Database()); n > c.agent.fabric.numSwitches() {
		t.Errorf("%d entries", n)
	}
	s := c.agent.Stats()
	if news := s.Changed + s.Refreshed + s.Outbid; news > 3*2*minBudget+3*minBudget {
		t.Errorf("%d entries were news, over the budget", news)
	}
	if s.Rejected[RejectBudget] == 0 || s.Repeated == 0 || s.Rejected[RejectVersion] == 0 {
		t.Errorf("not all kinds of storm were met: %+v", s)
	}
	link := c.peers[3].Link
	c.agent.Carrier(3, false, c.now)
	if c.agent.Topology().Live(link) {
		t.Error("in a storm, a failure of our own does not count")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more than before the storm", grown)
	}
	runtime.KeepAlive(c)
}

func TestReceive_rejectedAndRepeatedAllocateNothing(t *testing.T) {
	for _, keys := range []Keys{{}, {List: []Key{testKey}}} {
		c := newCouple(t, "fat-tree:k=4", "c1.1", keys)
		entry := testEntry{originator: int(c.peers[0].Peer), version: version{1, 1}, down: []uint64{1}}
		var fresh [][]byte
		for range 250 {
			fresh = append(fresh, c.message(0, &message{header: header{kind: typeUpdate}, entries: []testEntry{entry}}))
		}
		forged := append([]byte(nil), fresh[0]...)
		forged[atFingerprint]++
		c.agent.Receive(0, fresh[0], c.now)
		c.drain()
		i := 1
		if n := testing.AllocsPerRun(100, func() {
			c.agent.Receive(0, fresh[i], c.now) // says nothing new
			c.agent.Receive(0, fresh[i], c.now) // seen before
			c.agent.Receive(0, forged, c.now)
			c.agent.Tick(c.now)
			c.agent.Next()
			i++
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
		if s := c.agent.Stats(); s.Repeated != 101 || s.Rejected[RejectReplay] != 101 || s.Rejected[RejectFabric] != 101 {
			t.Errorf("not what was meant: %+v, %v", s, s.Rejected.ByName())
		}
	}
}

// Who has said something need not be told it.
func TestReceive_theNeighbourThatSaysItIsNotTold(t *testing.T) {
	c := newCouple(t, "fat-tree:k=4", "c1.1", Keys{})
	m := message{header: header{kind: typeUpdate}, entries: []testEntry{
		{originator: int(c.peers[0].Peer), version: version{1, 1}, down: []uint64{1}}}}
	c.agent.Receive(0, c.message(0, &m), c.now)
	c.agent.Receive(1, c.message(1, &m), c.now)
	var told []int
	c.agent.Send(func(port int, packet []byte) {
		if packet[atType] == typeUpdate {
			told = append(told, port)
		}
	})
	if !slices.Equal(told, []int{2, 3}) {
		t.Errorf("ports %v are told, want 2 and 3", told)
	}
}
