package dataplane

import (
	"encoding/binary"
	"testing"
	"time"

	"weft/link"
	"weft/resequencer"
)

// reader is one that has time for so many packets of a load in a millisecond, a batch at a time,
// while the flows of the parts it serves send some.
type reader struct {
	queue    standing
	sheds    shedding
	now      time.Duration
	waiting  float64
	capacity float64 // packets in a millisecond
	load     float64 // of all parts together
}

// run lets a time pass and returns how many parts were served on average.
func (r *reader) run(d time.Duration) (parts float64) {
	n := 0
	for until := r.now + d; r.now < until; n++ {
		took := min(r.waiting, superBatch)
		r.waiting -= took
		step := max(time.Duration(took/r.capacity*float64(time.Millisecond)), 20*time.Microsecond)
		r.now += step
		r.waiting += r.load * step.Seconds() * 1000 * float64(r.sheds.parts) / float64(r.sheds.all)
		r.queue.read(took < superBatch, r.now)
		r.sheds.read(&r.queue, r.now)
		parts += float64(r.sheds.parts)
	}
	return parts / float64(n)
}

// A reader keeps what it has time for, whatever that is, and takes back the rest when the load
// falls.
func TestShedding_findsWhatThereIsTimeFor(t *testing.T) {
	for _, capacity := range []float64{2, 10, 40, 90} {
		r := reader{sheds: newShedding(256), capacity: capacity, load: 100}
		r.run(20 * time.Second)
		served := r.run(20*time.Second) / 256 * r.load
		if served > 1.1*capacity || served < 0.5*capacity {
			t.Errorf("with time for %v packets of 100 it is to order %.1f", capacity, served)
		}
		r.load = capacity * 0.9
		if r.run(10 * time.Second); r.sheds.parts != 256 {
			t.Errorf("with time for %v packets of %v it orders %d parts of 256", capacity, r.load, r.sheds.parts)
		}
	}
}

// A burst, after which the queue empties, sheds nothing. Nor does a reader that was not run for a
// while.
func TestShedding_burst(t *testing.T) {
	r := reader{sheds: newShedding(256), capacity: 40, load: 30}
	for range 20 {
		r.waiting += 40 * 8 // 8 ms of its time
		r.run(50 * time.Millisecond)
		r.now += 200 * time.Millisecond
	}
	if r.sheds.parts != 256 {
		t.Errorf("%d parts of 256 are left", r.sheds.parts)
	}
}

// While a queue stands, holes end as of when what may fill them was seen, but not much later.
func TestStanding_holds(t *testing.T) {
	var s standing
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	if s.read(true, at(1)); s.holds(at(5)) != at(5) {
		t.Error("without a queue they end late")
	}
	s.read(false, at(10))
	s.read(false, at(11))
	if got := s.holds(at(11)); got != at(10) {
		t.Errorf("at 11 ms they end as of %v", got)
	}
	if got := s.holds(at(30)); got != at(30)-behind {
		t.Errorf("at 30 ms they end as of %v", got)
	}
	if s.read(true, at(31)); s.holds(at(31)) != at(31) {
		t.Error("behind the queue they end late")
	}
}

// A reader that has filled all its room does not know whether more waits. What is behind a hole
// comes out all the same, and no earlier than a moment later.
func TestGateway_roomFilledExactly(t *testing.T) {
	clock := new(handClock)
	programs, below := &script{recorder: recorder{max: link.MaxSuperLen}}, &script{header: link.VnetHeader{Flags: link.VnetDataValid}}
	const hold = 5 * time.Millisecond
	g, err := NewGateway(GatewayConfig{Address: addrB, Topology: fatTree, Programs: programs, Fabric: below, Policy: "drb", Seed: 1,
		Resequencer: resequencer.Config{Discipline: resequencer.Sequence, Hold: hold, MinHold: hold}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i := range superBatch { // in order but for the last, each flow's own
		b := dataPacket(uint16(1+min(i, superBatch-2)), 1000)
		if i == superBatch-1 {
			binary.BigEndian.PutUint32(b[24:], binary.BigEndian.Uint32(b[24:])+2000)
		}
		below.packets = append(below.packets, fixed(b))
	}
	if err := g.ReadFabric(); err != nil {
		t.Fatal(err)
	}
	if n := len(programs.written); n != superBatch-1 {
		t.Fatalf("%d packets delivered", n)
	}
	if clock.Run(hold); len(programs.written) != superBatch-1 {
		t.Error("the hole ended though what fills it may wait in the source")
	}
	if clock.Run(behind); len(programs.written) != superBatch {
		t.Errorf("%d packets delivered when the time was up", len(programs.written))
	}
}
