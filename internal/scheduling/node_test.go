package scheduling

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/hedera/wire"
	"weft/internal/elephant"
	"weft/topoupdate"
)

// fakeClient remembers reports.
type fakeClient struct {
	leads   bool
	reports []wire.Report
}

func (c *fakeClient) Send(r wire.Report) bool {
	if c.leads {
		c.reports = append(c.reports, r)
	}
	return c.leads
}
func (c *fakeClient) SetKeys(topoupdate.Keys) error { return nil }
func (c *fakeClient) Status() wire.ClientStatus     { return wire.ClientStatus{Leader: "x"} }
func (c *fakeClient) Close() error                  { return nil }

// fakeNode is a Node with a time and a program of the test's.
type fakeNode struct {
	*Node
	client *fakeClient
	now    time.Duration
	counts []elephant.Count
	pins   []elephant.Pin
	fails  error
	writes int
}

// tell is a placement that the program learns of.
func (f *fakeNode) tell(list ...wire.Placement) {
	f.place(list)
	f.flush()
}

var (
	tupleA = elephant.Flow{Src: netip.MustParseAddrPort("10.0.0.2:1"), Dst: netip.MustParseAddrPort("10.1.0.2:2"), Protocol: elephant.TCP}
	tupleB = elephant.Flow{Src: netip.MustParseAddrPort("10.0.0.2:3"), Dst: netip.MustParseAddrPort("10.1.0.2:2"), Protocol: elephant.UDP}
	via    = netip.MustParseAddr("10.4.1.1")
)

func newFakeNode(t *testing.T) *fakeNode {
	f := &fakeNode{client: &fakeClient{leads: true}}
	n, err := newNode(Config{
		Detector: elephant.Config{Link: func(netip.Addr) float64 { return 8e6 }}, Every: time.Hour,
		Now:     func() (time.Duration, error) { return f.now, nil },
		Counts:  func([]elephant.Count) ([]elephant.Count, error) { return f.counts, f.fails },
		SetPins: func(p []elephant.Pin) error { f.pins = p; f.writes++; return nil },
		Known: func(p elephant.Pin) error {
			if p.Path > 3 {
				return errors.New("no such path")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Node = n
	n.gather = time.Hour // the tests say when
	n.begin(f.client)
	t.Cleanup(func() {
		if n.Close(); len(f.pins) > 0 {
			t.Errorf("%v stay pinned", f.pins)
		}
	})
	return f
}

// step is a period in which a flow sends.
func (f *fakeNode) step(a, b uint64) {
	f.now += time.Second
	f.counts = []elephant.Count{{Key: tupleA.Key(), Bytes: a}, {Key: tupleB.Key(), Bytes: b}}
	f.turn()
}

// What is large is reported, with its rate, while a scheduler leads; what is said without one is
// counted as nothing.
func TestNode_reports(t *testing.T) {
	f := newFakeNode(t)
	f.step(0, 0)
	f.step(200_000, 50_000)
	f.client.leads = false
	f.step(400_000, 300_000)
	f.client.leads = true
	f.step(400_000, 900_000)
	want := [][]wire.Flow{{}, {{Tuple: TupleOf(tupleA), Rate: 1_600_000}}, {{Tuple: TupleOf(tupleB), Rate: 4_800_000}}}
	if len(f.client.reports) != len(want) {
		t.Fatalf("%d reports: %+v", len(f.client.reports), f.client.reports)
	}
	for i, r := range f.client.reports {
		if !slices.Equal(r.Flows, want[i]) {
			t.Errorf("report %d: %+v, want %+v", i, r.Flows, want[i])
		}
	}
	s := f.Status(elephant.ProgramStats{Counted: 5})
	if s.Evicted != 3 || s.Elephants != 1 || len(s.Largest) != 1 || s.Largest[0].Mbit != 4.8 || s.Error != "" {
		t.Errorf("%+v", s)
	}
	f.fails = errors.New("the map is gone")
	f.step(0, 0)
	if s := f.Status(elephant.ProgramStats{}); s.Error != "the map is gone" {
		t.Errorf("%+v", s)
	}
	if f.fails = nil; len(f.client.reports) != 3 {
		t.Error("what was not read was reported")
	}
}

// The control loop is timed from a flow's first report to its placement, once for as long as it is
// reported or pinned; renewals and placements of what was not reported are none.
func TestNode_timesTheLoop(t *testing.T) {
	f := newFakeNode(t)
	placed := func(e elephant.Flow) wire.Placement {
		return wire.Placement{Tuple: TupleOf(e), Via: via, For: time.Minute}
	}
	want := []float64{1250}
	wanted := func(what string) {
		t.Helper()
		if s := f.Status(elephant.ProgramStats{}); s.Loops != uint64(len(want)) || !slices.Equal(s.LoopsMS, want) {
			t.Errorf("%s: %d, %v ms; want %v", what, s.Loops, s.LoopsMS, want)
		}
	}
	send := func() { f.step(f.counts[0].Bytes+200_000, 0) }
	f.step(0, 0)
	send() // reported at 2 s
	send()
	f.now += 250 * time.Millisecond
	for range 2 {
		f.tell(placed(tupleA), placed(tupleB))
		send()
	}
	wanted("placed and renewed")
	f.step(f.counts[0].Bytes, 0) // it pauses
	send()
	f.now += time.Millisecond
	f.tell(placed(tupleB))
	f.tell(placed(tupleA))
	wanted("renewed after a pause")
	f.step(f.counts[0].Bytes, 0)
	f.now += time.Minute // the pin expires
	f.step(f.counts[0].Bytes, 0)
	send()
	f.now += time.Millisecond
	f.place([]wire.Placement{placed(tupleA)}) // the program learns of it in the next turn
	send()
	want = append(want, 1001)
	wanted("placed anew")
}

// Placements become pins, until they are withdrawn or expire. Those by unknown paths, and those that
// are no good, are counted and change nothing.
func TestNode_pins(t *testing.T) {
	f := newFakeNode(t)
	pinned := func() (list []elephant.Flow) {
		for _, p := range f.pins {
			list = append(list, p.Flow)
		}
		return list
	}
	at := func(e elephant.Flow, path int, valid time.Duration) wire.Placement {
		return wire.Placement{Tuple: TupleOf(e), Path: path, Via: via, For: valid}
	}
	f.tell(at(tupleA, 1, 3*time.Second), at(tupleB, 2, time.Second), at(tupleB, 9, time.Hour))
	if want := []elephant.Pin{{Flow: tupleA, Path: 1, Via: via, Until: 3 * time.Second}, {Flow: tupleB, Path: 2, Via: via, Until: time.Second}}; !slices.Equal(f.pins, want) {
		t.Fatalf("%+v, want %+v", f.pins, want)
	}
	bad := at(tupleB, 0, time.Second)
	bad.Via = netip.Addr{}
	f.tell(bad)
	if s := f.Status(elephant.ProgramStats{}); s.Unknown != 1 || s.Refused != 1 || s.Pins != 2 || len(s.Pinned) != 2 || s.Pinned[0].For != 3 || s.LastRefused == "" {
		t.Errorf("%+v", s)
	}
	f.step(0, 0)
	if got := pinned(); !slices.Equal(got, []elephant.Flow{tupleA}) {
		t.Errorf("pinned %v, want the one that has not expired", got)
	}
	f.tell(at(tupleA, 0, 0))
	if got := pinned(); len(got) > 0 {
		t.Errorf("pinned %v", got)
	}
	f.tell(at(tupleA, 0, 1<<60)) // cut to what is allowed
	if len(f.pins) != 1 || f.pins[0].Until != f.now+elephant.MaxValid {
		t.Errorf("%+v", f.pins)
	}
}

// All that a scheduler says one after the other is one change of the program.
func TestNode_placementsAreGathered(t *testing.T) {
	f := newFakeNode(t)
	for i := range 100 {
		f.place([]wire.Placement{{Tuple: TupleOf(tupleA), Path: i % 3, Via: via, For: time.Minute}})
	}
	f.place([]wire.Placement{{Tuple: TupleOf(tupleB), Path: 1, Via: via, For: time.Minute}})
	if f.flush(); f.writes != 1 || len(f.pins) != 2 {
		t.Errorf("the program was told %d times, of %d pins", f.writes, len(f.pins))
	}
	if f.flush(); f.writes != 1 {
		t.Error("told although nothing has changed")
	}
}
