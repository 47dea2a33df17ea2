package reorder

import (
	"math/rand/v2"
	"slices"
	"testing"

	"weft/flowcell"
)

func rng() *rand.Rand { return rand.New(rand.NewPCG(7, 0)) }

// segmentsOf returns the segments in order of arrival.
func segmentsOf(list []arrival) (s []int) {
	for _, a := range list {
		s = append(s, int(a.segment))
	}
	return s
}

// Every input has every segment of every flow once, the first of a flow first.
func TestCases_everySegmentOnce(t *testing.T) {
	for _, c := range Cases() {
		const flows, n = 37, 7200
		list := c.input(flows, n, rng())
		if want := n + c.known(flows); len(list) != want {
			t.Errorf("%s: %d packets, want %d", c.Name, len(list), want)
		}
		came := make(map[[2]uint32]bool)
		most := make(map[uint32]uint32)
		for _, a := range list {
			if len(came) > 0 && most[a.flow] == 0 && a.segment > 0 && !came[[2]uint32{a.flow, 0}] {
				t.Fatalf("%s: flow %d begins with segment %d", c.Name, a.flow, a.segment)
			}
			if came[[2]uint32{a.flow, a.segment}] {
				t.Fatalf("%s: segment %d of flow %d comes twice", c.Name, a.segment, a.flow)
			}
			came[[2]uint32{a.flow, a.segment}] = true
			most[a.flow] = max(most[a.flow], a.segment)
		}
		sum := 0
		for _, m := range most {
			sum += int(m) + 1
		}
		if sum != len(list) {
			t.Errorf("%s: %d packets of %d segments", c.Name, len(list), sum)
		}
		if c.many && len(most) != flows {
			t.Errorf("%s: %d flows, want %d", c.Name, len(most), flows)
		}
	}
}

func TestReordered_oneInAHundredBehind50(t *testing.T) {
	list := segmentsOf(reordered(1, 100_000, rng()))
	late := 0
	for i, s := range list {
		if i == 0 || s > slices.Max(list[max(0, i-60):i]) {
			continue
		}
		late++
		behind := 0 // of those sent later, how many came before
		for _, other := range list[max(0, i-60):i] {
			if other > s {
				behind++
			}
		}
		if behind > 50 || behind < 45 { // some of the 50 are late themselves
			t.Fatalf("segment %d comes behind %d later ones", s, behind)
		}
	}
	if late < 900 || late > 1100 {
		t.Errorf("%d of 100,000 are late, want 1 %%", late)
	}
}

func TestCells_interleaved(t *testing.T) {
	list := cells(4, 0)(1, 7200, nil)
	want := []int{0, 45, 90, 135, 1, 46, 91, 136, 2}
	if got := segmentsOf(list[:9]); !slices.Equal(got, want) {
		t.Errorf("begins with %v, want %v", got, want)
	}
	if got := segmentsOf(list[180:183]); !slices.Equal(got, []int{180, 225, 270}) {
		t.Errorf("goes on with %v", got)
	}
	for _, a := range list {
		if n := flowcell.Number(a.id); int(n.Cell()) != int(a.segment)/45 || int(n.Index()) != int(a.segment)%45 {
			t.Fatalf("segment %d is numbered %d.%d", a.segment, n.Cell(), n.Index())
		}
	}
}

func TestCells_skewLetsFlowcellsOvertake(t *testing.T) {
	list := segmentsOf(cells(4, 540)(1, 7200, nil))
	at := slices.Index(list, 3*45) // the first of the late path
	overtaking := make(map[int]bool)
	for _, s := range list[:at] {
		if s >= 4*45 {
			overtaking[s/45] = true
		}
	}
	if len(overtaking) != 9 {
		t.Errorf("%d flowcells overtake, want 9", len(overtaking))
	}
}

// The sender numbers all that it sends, and what is lost is missing.
func TestLossy_sentAgainWithANewNumber(t *testing.T) {
	const n = 100_000
	again, next, last := 0, 0, uint32(0)
	for _, a := range lossy(1, n, rng()) {
		s := int(a.segment)
		if s >= next {
			next, last = s+1, uint32(s+again) // all before it was sent, and again was
			if a.id != numbered(last) {
				t.Fatalf("segment %d is numbered %#x, want %#x", s, a.id, numbered(last))
			}
			continue
		}
		again++
		if behind := next - s; (behind < 490 || behind > 510) && next < n-10 { // in the end all is sent
			t.Fatalf("segment %d is sent again behind segment %d", s, next-1)
		}
		before := last
		for last++; a.id != numbered(last); last++ { // what was lost just before
			if last > before+10 {
				t.Fatalf("segment %d is sent again as %#x, want %#x or soon after it", s, a.id, numbered(before+1))
			}
		}
	}
	if again < 900 || again > 1100 {
		t.Errorf("%d of 100,000 are lost, want 1 %%", again)
	}
}

func TestBursts_sixteenOfAFlow(t *testing.T) {
	for name, draw := range map[string]func(int, *rand.Rand) func() int{"uniform": uniform, "zipf": zipf} {
		const flows, n = 1000, 160_000
		list := bursts(draw)(flows, n, rng())[flows:]
		count := make([]int, flows)
		for i := 0; i < n; i += burst {
			for j, a := range list[i : i+burst] {
				if a.flow != list[i].flow || int(a.segment) != int(list[i].segment)+j {
					t.Fatalf("%s: packet %d is segment %d of flow %d", name, i+j, a.segment, a.flow)
				}
			}
			count[list[i].flow]++
		}
		slices.Sort(count)
		top := 0 // bursts of the ten most active flows; on average ten a flow
		for _, c := range count[flows-10:] {
			top += c
		}
		if zipf := top > n/burst/4; zipf != (name == "zipf") {
			t.Errorf("%s: ten of 1000 flows have %d of %d bursts", name, top, n/burst)
		}
	}
}
