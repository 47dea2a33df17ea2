package balance

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/conga"
)

func TestParse_leafRules(t *testing.T) {
	for text, want := range map[string]Rule{
		"conga":                    {Kind: CONGA, Gap: 500 * time.Microsecond},
		"conga:gap=1ms":            {Kind: CONGA, Gap: time.Millisecond},
		"conga:tau=160us":          {Kind: CONGA, Gap: 500 * time.Microsecond, Tau: 160 * time.Microsecond},
		"conga:tau=10s,gap=1us":    {Kind: CONGA, Gap: time.Microsecond, Tau: 10 * time.Second},
		"luopan":                   {Kind: Luopan, Flowcell: FlowcellBytes, Samples: 2},
		"luopan:flowcell=4096":     {Kind: Luopan, Samples: 2, Flowcell: 4096},
		"luopan:d=4":               {Kind: Luopan, Flowcell: FlowcellBytes, Samples: 4},
		"luopan:expiry=40us,d=1":   {Kind: Luopan, Flowcell: FlowcellBytes, Samples: 1, Expiry: 40 * time.Microsecond},
		"luopan:d=1,d=3,expiry=1h": {Kind: Luopan, Flowcell: FlowcellBytes, Samples: 3, Expiry: time.Hour},
	} {
		got, err := Parse(text)
		if err != nil || got != want || !got.AtLeaf() || !got.ByProgram() {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q is %v, which is read as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"conga:gap=0":       "gap is \"0\", must be from 1µs to 1m0s",
		"conga:tau=0":       "tau is \"0\", must be from 1µs to 10s",
		"conga:tau=11s":     "from 1µs to 10s",
		"conga:d=2":         "conga gap and tau",
		"conga:expiry=1ms":  "no parameter",
		"luopan:d=0":        "d is \"0\", must be from 1 to 4",
		"luopan:d=5":        "from 1 to 4",
		"luopan:flowcell=9": "from 1024 to 1048576",
		"luopan:expiry=fat": "from 1µs to 1h0m0s",
		"luopan:gap=1ms":    "luopan d, expiry and flowcell",
		"luopan:m=1":        "no parameter",
		"Luopan":            "no rule",
	} {
		if r, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error with %q", text, r, err, want)
		}
	}
	for _, text := range []string{"", "ecmp", "drill", "two-level"} {
		if r, _ := Parse(text); r.AtLeaf() {
			t.Errorf("%q is for leaves", text)
		}
	}
}

func leafRack(t testing.TB, number uint32, count int, live ...int) *LeafRack {
	t.Helper()
	var paths []LeafPath
	for _, n := range live {
		paths = append(paths, LeafPath{Number: n, Uplink: n * 4 / count, Bounce: netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n + 1)})})
	}
	r, err := NewLeafRack(number, count, paths)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func newLeaf(t testing.TB, rule string) *Leaf {
	t.Helper()
	r, err := Parse(rule)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLeaf(r, 5, 10*time.Millisecond)
	l.Engine.Random = 99
	for i := range l.Local {
		l.Local[i] = NewDRE(time.Millisecond, 1e9)
	}
	return l
}

// Order lists each live path once, by tag, and Start says where each tag's begin. With more
// paths than tags the uplink is the tag.
func TestNewLeafRack(t *testing.T) {
	for _, r := range []*LeafRack{leafRack(t, 3, 4, 2, 0), leafRack(t, 3, 16, upTo(16)...), leafRack(t, 3, 64, upTo(64)...), leafRack(t, 3, 4)} {
		seen := 0
		for tag := range uint32(conga.Tags) {
			for i := r.Start[tag]; i < r.Start[tag+1]; i++ {
				path := uint32(r.Order[i])
				if uint32(r.Tag[path]) != tag || !r.Live(path) {
					t.Errorf("path %d has tag %d, not %d", path, r.Tag[path], tag)
				}
				seen++
			}
		}
		live := 0
		for path := range uint32(MaxLeafPaths) {
			if r.Live(path) {
				live++
			}
		}
		if seen != int(r.N) || live != seen {
			t.Errorf("%d paths, %d in order, %d live", r.N, seen, live)
		}
	}
	if r := leafRack(t, 3, 64, 63); r.Tag[63] != 3 {
		t.Errorf("tag %d, want the uplink's, 3", r.Tag[63])
	}
	if _, err := NewLeafRack(1, MaxLeafPaths+1, nil); err == nil {
		t.Error("too many paths are taken")
	}
}

// The paper's figure 6 in numbers: two uplinks, of which the remote metrics are 5 and 3 and
// the local ones 1 and 4. The maxima are 5 and 4, so the second uplink is taken.
func TestLeaf_congaTakesTheLeastMaximum(t *testing.T) {
	l, r := newLeaf(t, "conga:gap=1ms"), leafRack(t, 7, 2, 0, 1)
	now := uint64(1e9)
	p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}
	ack := l.knows(r, p, now) // so that reports count
	back := Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 3}
	now += 2e6
	l.Local[r.Uplink[0]].Add(125_000/8+10, now) // an eighth of what 1 Gbit/s carries in tau
	l.Local[r.Uplink[1]].Add(125_000/2+10, now)
	for _, m := range []conga.Mark{{Feedback: true, Tag: 0, Metric: 5}, {Feedback: true, Tag: 1, Metric: 3}} {
		if !l.Hear(7, back, ack, m, now) {
			t.Fatal("a report in a connection does not count")
		}
	}
	if a, b := l.metric(r, 0, now), l.metric(r, 1, now); a != 5 || b != 4 {
		t.Fatalf("metrics %d and %d, want 5 and 4", a, b)
	}
	for i := range uint32(20) {
		p.Ports = i<<16 | 9
		if path := l.Choose(r, p, 0, now); path != 1 {
			t.Fatalf("path %d, want 1", path)
		}
	}
	// A report loses its weight with age: the other path has its turn again.
	now += 100e6
	taken := make(map[uint32]int)
	for i := range uint32(40) {
		p.Ports = i<<16 | 10
		taken[l.Choose(r, p, 0, now)]++
	}
	if taken[0] == 0 || taken[1] == 0 {
		t.Errorf("%v, want both", taken)
	}
}

// A flow moves only if another path is strictly better than that of its latest flowlet.
func TestLeaf_congaPrefersTheLatest(t *testing.T) {
	l, r := newLeaf(t, "conga:gap=1us"), leafRack(t, 7, 4, 0, 1, 2, 3)
	now := uint64(1e9)
	p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3}
	first := l.Choose(r, p, 0, now)
	for range 50 {
		now += 1e6
		if path := l.Choose(r, p, 0, now); path != first {
			t.Fatalf("path %d after %d, though all are equal", path, first)
		}
	}
	dead := leafRack(t, 7, 4, int(first+1)%4)
	if path := l.Choose(dead, p, 0, now); path != (first+1)%4 {
		t.Errorf("path %d, want the only live one", path)
	}
}

// Reports go in the order and with the values that package conga has, and the DRE is its
// DRE but for rounding.
func TestLeaf_likePackageConga(t *testing.T) {
	const rate = 1e9
	l := newLeaf(t, "conga:gap=1ms")
	table, err := conga.New(conga.Config{Tau: time.Millisecond, Age: l.Age, RateBits: rate})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4, 4))
	p := Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 80<<16 | 1000}
	var paths []LeafPath // each by an uplink of its own, as package conga's tags are
	for n := range conga.Tags {
		paths = append(paths, LeafPath{Number: n, Uplink: n, Bounce: netip.AddrFrom4([4]byte{10, 9, 0, 1})})
	}
	r, err := NewLeafRack(9, conga.Tags, paths)
	if err != nil {
		t.Fatal(err)
	}
	now, reports, apart := time.Second, 0, 0
	for range 20_000 {
		now += time.Duration(rng.Uint64N(400_000))
		forth := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 1000<<16 | 80}
		ack := l.knows(r, forth, uint64(now))
		tag, metric := uint8(rng.IntN(16)), uint8(rng.IntN(8))
		switch rng.IntN(4) {
		case 0:
			l.Hear(9, p, ack, conga.Mark{Tag: tag, Metric: metric}, uint64(now))
			table.Received(9, tag, metric, now)
		case 1:
			f := l.From[9]
			gotTag, gotMetric, got := f.report(uint64(now), uint64(l.Age))
			l.From[9] = f
			wantTag, wantMetric, want := table.NextFeedback(9, now)
			if got != want || gotTag != wantTag || gotMetric != wantMetric {
				t.Fatalf("report %d %d %v, want %d %d %v", gotTag, gotMetric, got, wantTag, wantMetric, want)
			}
			if got {
				reports++
			}
		case 2:
			bytes := rng.Uint32N(30_000)
			l.Local[tag].Add(bytes, uint64(now))
			table.Sent(tag, int(bytes), now)
		default:
			l.Hear(9, p, ack, conga.Mark{Feedback: true, Tag: tag, Metric: metric}, uint64(now))
			table.Choose(9, []int{0}, func(int) uint8 { return 0 }, -1, now) // so that it takes reports
			table.Feedback(9, tag, metric, now)
		}
		for _, d := range table.Destinations(now) {
			for _, u := range d.Tags {
				got, want := l.metric(r, int(u.Tag), uint64(now)), max(u.Local, u.Remote)
				if got != want {
					apart++ // at an edge between two levels
				}
				if got > want+1 || want > got+1 {
					t.Fatalf("tag %d: metric %d, want %d: %+v", u.Tag, got, want, u)
				}
			}
		}
	}
	if reports < 1000 || apart > 2000 { // of some 300,000
		t.Errorf("%d reports, %d metrics apart", reports, apart)
	}
}

// A full uplink reads full by each tag that begins with it, and an idle one idle (CONGA §3.2
// has an estimate for each link). In a fat-tree of k=4 tags 0 and 1 begin with uplink 0 to
// another pod, tags 2 and 3 with uplink 1; within the pod tag 1 is uplink 1.
func TestLeaf_loadIsOfTheUplink(t *testing.T) {
	bounce := netip.AddrFrom4([4]byte{10, 9, 0, 1})
	var four, two []LeafPath
	for n := range 4 {
		four = append(four, LeafPath{Number: n, Uplink: n / 2, Bounce: bounce})
	}
	for n := range 2 {
		two = append(two, LeafPath{Number: n, Uplink: n, Bounce: bounce})
	}
	away, err := NewLeafRack(7, 4, four)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := NewLeafRack(1, 2, two)
	if err != nil {
		t.Fatal(err)
	}
	first, err := NewLeafRack(7, 4, four[:2])
	if err != nil {
		t.Fatal(err)
	}
	l := newLeaf(t, "conga:gap=1us")
	now, by := uint64(1e12), make(map[uint8]int)
	for n := range uint32(5000) { // 1 Gbit/s over two tags, which is all that the uplink has
		now += 12_000
		by[first.Tag[l.Choose(first, Packet{Src: 1, Dst: 2, Protocol: 6, Ports: n}, 1500, now)]]++
	}
	if by[0] < 1000 || by[1] < 1000 {
		t.Fatalf("by tags %v, want both", by)
	}
	for tag, want := range []bool{true, true, false, false} {
		if m := l.metric(away, tag, now); (m >= 6) != want || !want && m != 0 {
			t.Errorf("tag %d to another pod reads %d", tag, m)
		}
	}
	for tag, want := range []bool{true, false} {
		if m := l.metric(pod, tag, now); (m >= 6) != want || !want && m != 0 {
			t.Errorf("tag %d within the pod reads %d", tag, m)
		}
	}
}

// collide returns two flows of one place.
func (l *Leaf) collide(t *testing.T) (a, b Packet) {
	t.Helper()
	at := make(map[uint32]uint32)
	for n := range uint32(5000) {
		p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: n}
		place, _ := l.Place(p)
		if first, ok := at[place]; ok {
			return Packet{Src: 1, Dst: 2, Protocol: 6, Ports: first}, p
		}
		at[place] = n
	}
	t.Fatal("no two flows have one place")
	return a, b
}

// Flows of one place share its path if they lead to one rack, "collisions simply imply some
// load balancing opportunities are lost" (CONGA §3.4). The first keeps its proof.
func TestLeaf_collisionsShareThePath(t *testing.T) {
	for _, rule := range []string{"conga:gap=1ms", "luopan"} {
		l, r := newLeaf(t, rule), leafRack(t, 7, 16, upTo(16)...)
		a, b := l.collide(t)
		now := uint64(1e12)
		first := l.Choose(r, a, 100, now)
		l.Departs(7, a, LeafSegment{Seq: 5000, Payload: 1000, Flags: leafACK})
		for range 40 {
			now += 100_000
			if path := l.Choose(r, b, 100, now); path != first {
				t.Fatalf("%s: path %d, want %d", rule, path, first)
			}
			l.Departs(7, b, LeafSegment{Seq: 9e8, Payload: 1000, Flags: leafACK})
			if path := l.Choose(r, a, 100, now); path != first {
				t.Fatalf("%s: path %d, want %d", rule, path, first)
			}
		}
		if l.Begun != 1 || l.Shared != 40 || l.Evicted != 0 {
			t.Errorf("%s: %d begun, %d shared, %d evicted", rule, l.Begun, l.Shared, l.Evicted)
		}
		if place, _ := l.Place(a); l.Flows[place].Highest != 6000 {
			t.Errorf("%s: %+v", rule, l.Flows[place])
		}
		other := leafRack(t, 8, 16, upTo(16)...)
		l.Choose(other, b, 100, now)
		if l.Evicted != 1 || l.Begun != 2 {
			t.Errorf("%s, to another rack: %d evicted, %d begun", rule, l.Evicted, l.Begun)
		}
	}
}

// Between a mark and the next there is a report, if there is one.
func TestLeaf_markAndReportTakeTurns(t *testing.T) {
	l, r := newLeaf(t, "conga"), leafRack(t, 7, 2, 0, 1)
	now := uint64(1e12)
	ack := l.knows(r, Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}, now)
	hear := func(tag, metric uint8) {
		l.Hear(7, Packet{Src: 2, Dst: 1, Protocol: 6, Ports: 4<<16 | 3}, ack, conga.Mark{Tag: tag, Metric: metric}, now)
	}
	hear(1, 6)
	hear(0, 2)
	for i, want := range []conga.Mark{{Feedback: true, Tag: 0, Metric: 2}, {Tag: 9}, {Feedback: true, Tag: 1, Metric: 6}, {Tag: 9}, {Tag: 9}} {
		if got := l.Mark(7, 9, now); got != want {
			t.Errorf("mark %d: %+v, want %+v", i, got, want)
		}
	}
}
