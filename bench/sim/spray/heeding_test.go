package spray

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weft/drb"
	"weft/flowcell"
	"weft/internal/fate"
	"weft/policy"
)

// diary is the selector of a flow that writes down what it is told. Its paths go round.
type diary struct {
	next int
	told *[]string
}

func (d *diary) Next(live []int, _ time.Duration) int {
	d.next++
	return live[d.next%len(live)]
}

func (d *diary) Acked(path int, marked bool, now time.Duration) {
	*d.told = append(*d.told, fmt.Sprintf("acked %d %v %v", path, marked, now))
}

func (d *diary) Lost(path int, timeout bool, now time.Duration) {
	*d.told = append(*d.told, fmt.Sprintf("lost %d %v %v", path, timeout, now))
}

// A selector in the simulator is told what one in a host is told (TestHeeding of package
// dataplane): of the flow's own packets alone.
func TestHeeding_isToldOfWhatIsAcknowledged(t *testing.T) {
	var told []string
	p := policy.Policy{Name: "heedful", Unit: flowcell.Unit{Kind: flowcell.UnitPacket}, Rule: drb.Random}.
		Heeds("a diary", func(uint64) policy.Selector { return &diary{told: &told} })
	h, err := hostsBy(HostsConfig{Topology: parse(t, fatTree), Seed: 1}, p)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Heeds() || hostsOf(t, "rb", fatTree, 1).Heeds() {
		t.Error("who heeds is not known")
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s: told is %q, wanted is %q", what, told, want)
		}
		told = nil
	}
	var f, other, near Flow
	h.Open(&f, 0, 15, tuple(0, 15, 1))
	h.Open(&other, 0, 15, tuple(0, 15, 2))
	h.Open(&near, 0, 1, tuple(0, 1, 3))
	by := make([]int, 12)
	data := func(f *Flow, seq uint32, now time.Duration) int {
		path, _ := h.Data(f, seq, 1000, 1040, now)
		return path
	}
	for i := range by {
		by[i] = data(&f, uint32(1000*i), 0)
		data(&other, uint32(1000*i), 0)
		if path := data(&near, uint32(1000*i), 0); path != -1 {
			t.Fatalf("within the rack path %d is taken", path)
		}
	}
	acked := func(i int, marked bool) string { return fmt.Sprintf("acked %d %v 9ns", by[i], marked) }
	h.Acked(&f, fate.Ack{All: 2000}, 9)
	expect("two", acked(0, false), acked(1, false))
	h.Acked(&f, fate.Ack{All: 3000, Marked: true}, 9)
	expect("one, marked", acked(2, true))
	h.Acked(&f, fate.Ack{All: 3000, From: 5000, To: 7000}, 9)
	expect("a block", acked(5, false), acked(6, false))
	data(&f, 3000, 9)
	expect("a hole is sent again", fmt.Sprintf("lost %d false 9ns", by[3]))
	data(&f, 7000, time.Second)
	expect("another, after a pause", fmt.Sprintf("lost %d true 1s", by[7]))
	h.Acked(&f, fate.Ack{All: 8000}, 9)
	expect("what was sent again tells nothing", acked(4, false))
	h.Acked(&near, fate.Ack{All: 8000}, 9)
	expect("within the rack")
	if path, _ := h.Data(&f, 12_000, 0, 40, 9); path < 0 { // as a handshake
		t.Errorf("what has no payload goes by %d", path)
	}
}
