package flowcell

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

const us = time.Microsecond

// sent is a packet and what is to be said of it.
type sent struct {
	at                time.Duration
	payload, segments int
	begins            bool
	cell              uint16
	index             uint8
}

func TestNext_cuts(t *testing.T) {
	cell := Unit{Kind: UnitFlowcell, Bytes: 10_000}
	gap := Unit{Kind: UnitFlowlet, Gap: 500 * us}
	for _, c := range []struct {
		name string
		unit Unit
		sent []sent
	}{
		{"packets", Unit{Kind: UnitPacket}, []sent{{0, 100, 1, true, 0, 0}, {0, 100, 1, true, 0, 0}, {us, 60_000, 45, true, 0, 0}}},
		{"a flow", Unit{Kind: UnitFlow}, []sent{{0, 100, 1, true, 0, 0}, {0, 100, 1, false, 0, 0}, {time.Hour, 60_000, 45, false, 0, 0}}},
		{"flowcells", cell, []sent{
			{0, 4000, 1, true, 0, 0},
			{0, 4000, 1, false, 0, 1},
			{0, 2000, 1, false, 0, 2}, // exactly full
			{0, 1, 1, true, 1, 0},
			{0, 9999, 1, false, 1, 1},
			{0, 5000, 1, true, 2, 0},
			{time.Hour, 5000, 1, false, 2, 1}, // time does not count
		}},
		{"super-segments", cell, []sent{
			{0, 4000, 3, true, 0, 0},
			{0, 6000, 5, false, 0, 3},
			{0, 4000, 3, true, 1, 0},
			{0, 6001, 5, true, 2, 0}, // is not divided
			{0, 3999, 3, false, 2, 5},
		}},
		{"larger than a cell", cell, []sent{
			{0, 100, 1, true, 0, 0},
			{0, 60_000, 42, true, 1, 0},
			{0, 100, 1, true, 2, 0},
			{0, 10_001, 1, true, 3, 0},
			{0, 10_000, 1, true, 4, 0},
		}},
		{"more segments than a cell", cell, []sent{
			{0, 100, 1, true, 0, 0},
			{0, 64, 64, true, 1, 0}, // a kernel counts to 1.63
			{0, 1, 1, true, 2, 0},
			{0, 65, 65, true, 3, 0}, // to 4.0
			{0, 1, 1, true, 5, 0},
			{0, 63, 63, true, 6, 0},
			{0, 1, 1, true, 7, 0},
			{0, 129, 129, true, 8, 0}, // to 10.0
			{0, 1, 1, true, 11, 0},
			{0, 62, 62, false, 11, 1},
			{0, 1, 1, true, 12, 0},
			{0, 62, 62, false, 12, 1},
			{0, 1, 1, true, 13, 0},
			{0, 63, 63, true, 14, 0},
		}},
		{"flowlets", gap, []sent{
			{0, 100, 1, true, 0, 0},
			{500 * us, 100, 1, false, 0, 0},
			{1000 * us, 60_000, 45, false, 0, 0}, // bytes do not count
			{1501 * us, 100, 1, true, 0, 0},
			{2001 * us, 100, 1, false, 0, 0},
			{2502 * us, 100, 1, true, 0, 0},
		}},
	} {
		var cutter Cutter
		var seq uint32
		for i, s := range c.sent {
			n, begins := cutter.Next(c.unit, seq, s.payload, s.segments, s.at)
			if begins != s.begins || n != MakeNumber(s.cell, s.index) {
				t.Errorf("%s: packet %d: %d.%d, begins %v; want %d.%d, %v",
					c.name, i, n.Cell(), n.Index(), begins, s.cell, s.index, s.begins)
			}
			seq += uint32(s.payload)
		}
	}
}

// 64 KB is 45 whole segments of 1448 bytes, and a part of one.
func TestNext_workedExample(t *testing.T) {
	u := Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}
	var c Cutter
	for cell := range uint16(3) {
		for index := range uint8(46) {
			payload := 1448
			if index == 45 {
				payload = 65536 - 45*1448
			}
			n, begins := c.Next(u, 0, payload, 1, 0)
			if n != MakeNumber(cell, index) || begins != (index == 0) {
				t.Fatalf("segment %d of cell %d: %d.%d, begins %v", index, cell, n.Cell(), n.Index(), begins)
			}
		}
	}
	// All of one size, the 46th would pass 64 KB.
	for i := range 46 {
		if n, begins := c.Next(u, 0, 1448, 1, 0); i == 45 && (!begins || n != MakeNumber(4, 0)) {
			t.Errorf("the 46th segment of 1448 bytes: %d.%d, begins %v", n.Cell(), n.Index(), begins)
		}
	}
}

func TestNext_cellNumbersWrap(t *testing.T) {
	u := Unit{Kind: UnitFlowcell, Bytes: 1448}
	c := NewCutter(1020)
	for i := range uint16(3000) {
		n, begins := c.Next(u, 0, 1448, 1, 0)
		if want := (1020 + i) % 1024; n.Cell() != want || n.Index() != 0 || !begins {
			t.Fatalf("cell %d is %d.%d, want %d.0", i, n.Cell(), n.Index(), want)
		}
	}
}

func TestNewCutter_numbersFromTheSeed(t *testing.T) {
	u := Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}
	first := map[uint16]int{}
	for i := range 2000 {
		f := numbered(i)
		c := NewCutter(f.Hash(1))
		n, _ := c.Next(u, 0, 1448, 1, 0)
		first[n.Cell()]++
	}
	// Of 2000 balls in 1024 bins 879 bins get one; the deviation is 10.
	if len(first) < 820 || len(first) > 940 {
		t.Errorf("2000 flows begin with %d different cells", len(first))
	}
}

func TestEnd_nextPacketBegins(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		cell uint16 // of the packet after End
	}{
		{Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}, 1},
		{Unit{Kind: UnitFlowlet, Gap: FlowletGap}, 0},
		{Unit{Kind: UnitFlow}, 0},
	} {
		var cutter Cutter
		cutter.End() // before the flow has begun it says nothing
		for i, want := range []bool{true, false} {
			if n, begins := cutter.Next(c.unit, 0, 1, 1, 0); begins != want || n.Cell() != 0 {
				t.Errorf("%v: packet %d: %d.%d, begins %v", c.unit, i, n.Cell(), n.Index(), begins)
			}
		}
		cutter.End()
		for i, want := range []bool{true, false} {
			if n, begins := cutter.Next(c.unit, 0, 1, 1, 0); begins != want || n != MakeNumber(c.cell, uint8(i)) && c.cell > 0 {
				t.Errorf("%v: packet %d after End: %d.%d, begins %v", c.unit, i, n.Cell(), n.Index(), begins)
			}
		}
	}
}

// cells is the flowcell rule without haste: it remembers the packets of the
// cell and counts IDs one by one, as a kernel does.
type cells struct {
	unit     Unit
	payloads []int
	counts   []int
	id       uint16 // of the next segment
	highest  int64  // end of the data sent, or -1
	last     time.Duration
}

func (c *cells) next(d draw, now time.Duration) (id uint16, begins bool) {
	sum := func(list []int) (n int) {
		for _, x := range list {
			n += x
		}
		return n
	}
	resent := d.at+int64(d.payload) <= c.highest && now-c.last > LeastTimeout
	if len(c.payloads) == 0 || sum(c.payloads)+d.payload > c.unit.Bytes || sum(c.counts)+d.segments > 63 || resent {
		for c.id%64 != 0 {
			c.id++
		}
		c.payloads, c.counts, begins = nil, nil, true
	}
	id = c.id
	c.payloads, c.counts = append(c.payloads, d.payload), append(c.counts, d.segments)
	c.highest, c.last = max(c.highest, d.at+int64(d.payload)), now
	for range d.segments {
		c.id++
	}
	return id, begins
}

// draw is a packet of a flow whose data begins at 0.
type draw struct {
	at                int64
	payload, segments int
	pause             time.Duration // before it
}

// flowRun sends packets through a Cutter and what it must equal.
type flowRun struct {
	cutter  Cutter
	oracle  cells
	isn     uint32
	now     time.Duration
	sent    int
	timeout int // packets that began a flowcell after one
	last    Number
	bytes   int // of this cell
	used    int
}

func newFlowRun(u Unit, start uint16, isn uint32) *flowRun {
	return &flowRun{cutter: NewCutter(uint64(start)), oracle: cells{unit: u, id: start % 1024 * 64, highest: -1}, isn: isn}
}

// send sends a packet and checks what must hold of any flow beside what the
// oracle says.
func (r *flowRun) send(d draw) error {
	r.now += d.pause
	i := r.sent
	r.sent++
	if d.at+int64(d.payload) <= r.oracle.highest && d.pause > LeastTimeout {
		r.timeout++
	}
	edge, recent := r.cutter.Edge(r.now)
	if want := i > 0 && d.pause <= LeastTimeout; recent != want || want && edge != Number(r.oracle.id-1) {
		return fmt.Errorf("an edge before packet %d, %v after the last: %#x, %v; want %#x, %v", i, d.pause, edge, recent, r.oracle.id-1, want)
	}
	n, begins := r.cutter.Next(r.oracle.unit, r.isn+uint32(d.at), d.payload, d.segments, r.now)
	id, want := r.oracle.next(d, r.now)
	if n != Number(id) || begins != want {
		return fmt.Errorf("packet %d, %+v: %d.%d, begins %v; want %d.%d, %v",
			i, d, n.Cell(), n.Index(), begins, id>>6, id&63, want)
	}
	switch {
	case begins && n.Index() != 0:
		return fmt.Errorf("packet %d begins a cell with %d.%d", i, n.Cell(), n.Index())
	case begins && i > 0 && d.segments <= 63 && r.used <= 63 && n.Cell() != (r.last.Cell()+1)%Cells:
		return fmt.Errorf("packet %d: cell %d after %d", i, n.Cell(), r.last.Cell())
	case !begins && (n.Cell() != r.last.Cell() || n.Index() <= r.last.Index()):
		return fmt.Errorf("packet %d: %d.%d after %d.%d", i, n.Cell(), n.Index(), r.last.Cell(), r.last.Index())
	}
	if begins {
		r.bytes, r.used = 0, 0
	}
	r.bytes, r.used = r.bytes+d.payload, r.used+d.segments
	if !begins && (r.bytes > r.oracle.unit.Bytes || r.used > 63) {
		return fmt.Errorf("packet %d: a cell of %d bytes in %d segments", i, r.bytes, r.used)
	}
	r.last = n
	return nil
}

func TestNext_matchesObviousOne(t *testing.T) {
	timeouts := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		u := Unit{Kind: UnitFlowcell, Bytes: 1 << (10 + rng.IntN(8))}
		most := []int{1, 3, 45, 70, 200}[seed%5] // segments
		mss := []int{1, 100, 536, 1448, 8948}[rng.IntN(5)]
		r := newFlowRun(u, uint16(rng.Uint32()), rng.Uint32())
		for range 3000 {
			d := draw{at: max(0, r.oracle.highest), segments: 1 + rng.IntN(most), pause: time.Duration(rng.IntN(20)) * us}
			d.payload = max(1, d.segments*mss-rng.IntN(mss))
			if rng.IntN(4) == 0 { // sent again, in part or whole
				d.at = max(0, d.at-int64(rng.IntN(4*mss)))
			}
			if rng.IntN(8) == 0 {
				d.pause = []time.Duration{LeastTimeout - 1, LeastTimeout, LeastTimeout + 1, time.Second, time.Hour}[rng.IntN(5)]
			}
			if err := r.send(d); err != nil {
				t.Fatalf("seed %d, %v: %v", seed, u, err)
			}
		}
		timeouts += r.timeout
	}
	if timeouts < 1000 {
		t.Errorf("%d packets are sent again after a timeout: the test tests little", timeouts)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint16(3), uint32(7), 65536, []byte{1, 1, 0, 0, 1, 45, 0, 0, 9, 45, 3, 6, 200, 1, 0, 9, 64, 64, 1, 5, 62, 1, 9, 9})
	f.Fuzz(func(t *testing.T, start uint16, isn uint32, bytes int, script []byte) {
		r := newFlowRun(Unit{Kind: UnitFlowcell, Bytes: min(max(bytes, 1), 1<<20)}, start, isn)
		for ; len(script) >= 4; script = script[4:] {
			d := draw{at: max(0, r.oracle.highest), segments: 1 + int(script[0])}
			d.payload = d.segments * (1 + 40*int(script[1]))
			d.at = max(0, d.at-int64(script[2])*500)
			d.pause = time.Duration(script[3]) * time.Millisecond
			if err := r.send(d); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What is sent again after a pause begins a unit each time, a flowlet even of a
// longer gap; nothing else does.
func TestNext_resentAfterATimeoutBegins(t *testing.T) {
	for _, u := range []Unit{{Kind: UnitFlowcell, Bytes: FlowcellBytes}, {Kind: UnitFlowlet, Gap: time.Hour}} {
		for _, c := range []struct {
			name    string
			seq     uint32
			payload int
			pause   time.Duration
			begins  bool
		}{
			{"again after a timeout", 0xfffffff0, 1000, LeastTimeout + 1, true},
			{"a part of it", 100, 10, LeastTimeout + 1, true},
			{"again soon", 0xfffffff0, 1000, LeastTimeout, false},
			{"with something new", 0xfffffff0, 1001, time.Second, false},
			{"new", 984, 1000, time.Second, false},
		} {
			cutter := NewCutter(3)
			cutter.Next(u, 0xfffffff0, 1000, 1, time.Second) // up to 984
			again := cutter
			if _, begins := cutter.Next(u, c.seq, c.payload, 1, time.Second+c.pause); begins != c.begins {
				t.Errorf("%v: %s: begins %v", u, c.name, begins)
			}
			for i := range 30 {
				_, begins := again.Next(u, 0xfffffff0, 1000, 1, time.Second+time.Duration(i+1)*c.pause)
				if begins != (c.pause > LeastTimeout) {
					t.Errorf("%v: %v later for the %dth time: begins %v", u, c.pause, i+1, begins)
				}
			}
		}
	}
}

// The flow's first data is not taken for data sent again, wherever it begins.
func TestNext_firstDataIsNew(t *testing.T) {
	for _, isn := range []uint32{0, 1, 1 << 31, 1<<31 + 1, 0xffffffff} {
		var c Cutter
		u := Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}
		c.Next(u, isn, 10, 1, time.Hour)
		if n, begins := c.Next(u, isn+10, 10, 1, 2*time.Hour); begins || n != 1 {
			t.Errorf("data behind the first, from %d on: %d.%d, begins %v", isn, n.Cell(), n.Index(), begins)
		}
	}
}

func TestCutter_isSmall(t *testing.T) {
	if n := unsafe.Sizeof(Cutter{}); n > 24 {
		t.Errorf("%d bytes a flow", n)
	}
}

// A flow of single segments never has an index above MaxIndex, so that the ID
// of who only counts is told from it within 64 packets.
func TestNext_neverUsesTheLastIndex(t *testing.T) {
	for _, mss := range []int{1, 536, 1040, 1041, 1448} {
		var c Cutter
		for range 10_000 {
			if n, _ := c.Next(Unit{Kind: UnitFlowcell, Bytes: FlowcellBytes}, 0, mss, 1, 0); n.Index() > MaxIndex {
				t.Fatalf("segments of %d bytes: %d.%d", mss, n.Cell(), n.Index())
			}
		}
	}
}

// Flowlets: a path may change after a pause and at no other time.
func TestNext_flowletsEndWithPauses(t *testing.T) {
	const seed = 9
	rng := rand.New(rand.NewPCG(seed, 0))
	u := Unit{Kind: UnitFlowlet, Gap: FlowletGap}
	var c Cutter
	now, flowlets := time.Duration(0), 0
	for i := range 10_000 {
		pause := time.Duration(rng.IntN(int(600 * us)))
		now += pause
		_, begins := c.Next(u, uint32(1448*i), 1448, 1, now)
		if want := i == 0 || pause > FlowletGap; begins != want {
			t.Fatalf("seed %d: packet %d after %v: begins %v", seed, i, pause, begins)
		}
		if begins {
			flowlets++
		}
	}
	if flowlets < 1000 {
		t.Errorf("%d flowlets: the test tests little", flowlets)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, u := range []Unit{{Kind: UnitFlowcell, Bytes: FlowcellBytes}, {Kind: UnitFlowlet, Gap: FlowletGap}} {
		b.Run(u.String(), func(b *testing.B) {
			var c Cutter
			for i := 0; b.Loop(); i++ {
				c.Next(u, uint32(1448*i), 1448, 1, time.Duration(i)*us)
			}
		})
	}
}
