package balance

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Rule{
		"":                 {Kind: Routes},
		"routes":           {Kind: Routes},
		"ecmp":             {Kind: ECMP},
		"rb":               {Kind: RB},
		"rrb":              {Kind: RRB},
		"drb":              {Kind: DRB},
		"letflow":          {Kind: LetFlow, Gap: 500 * time.Microsecond},
		"letflow:gap=1ms":  {Kind: LetFlow, Gap: time.Millisecond},
		"drill":            {Kind: DRILL, Samples: 2, Memory: 1},
		"drill:m=0":        {Kind: DRILL, Samples: 2},
		"drill:d=4,m=2":    {Kind: DRILL, Samples: 4, Memory: 2},
		"letflow:gap=60s":  {Kind: LetFlow, Gap: time.Minute},
		"letflow:gap=1us":  {Kind: LetFlow, Gap: time.Microsecond},
		"drill:m=2,d=1":    {Kind: DRILL, Samples: 1, Memory: 2},
		"drill:d=2,d=3":    {Kind: DRILL, Samples: 3, Memory: 1},
		"letflow:gap=0.5s": {Kind: LetFlow, Gap: 500 * time.Millisecond},
		"two-level":        {Kind: TwoLevel},
		"classifier":       {Kind: Classifier, Interval: time.Second, Moves: 3},

		"classifier:interval=100ms,moves=64": {Kind: Classifier, Interval: 100 * time.Millisecond, Moves: 64},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q is %v, which is read as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"spray":            "choose one of routes, ecmp, rb, rrb, drb, letflow, drill",
		"DRILL":            "no rule",
		"drill:":           `no parameter ""`,
		"drill:d=0":        "from 1 to 4",
		"drill:d=5":        "from 1 to 4",
		"drill:m=3":        "from 0 to 2",
		"drill:m=x":        "from 0 to 2",
		"drill:gap=1ms":    "no parameter",
		"letflow:d=1":      "no parameter",
		"letflow:gap=0":    "from 1µs to 1m0s",
		"letflow:gap=2m":   "from 1µs to 1m0s",
		"letflow:gap=fast": "from 1µs to 1m0s",
		"rb:gap=1ms":       "the others have none",
		":d=1":             "no rule",
		"two-level:gap=1s": "the others have none",

		"classifier:interval=99ms": "from 100ms to 1m0s",
		"classifier:interval=2m":   "from 100ms to 1m0s",
		"classifier:interval=1":    "from 100ms to 1m0s",
		"classifier:moves=0":       "from 1 to 64",
		"classifier:moves=65":      "from 1 to 64",
		"classifier:gap=1ms":       "no parameter",
		"drill:moves=1":            "no parameter",
	} {
		if r, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want an error with %q", text, r, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("drill:d=2,m=1")
	f.Add("letflow:gap=1ms")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q is %+v, and %v again: %+v, %v", text, r, r, again, err)
		}
	})
}

// selected is what the kernel makes of a hash: fib_rebalance and fib_select_multipath of
// Linux' net/ipv4/fib_semantics.c, with 0 for the weight of a hop that is dead.
func selected(weights []uint32, hash uint32) int {
	var total, w uint64
	for _, x := range weights {
		total += uint64(x)
	}
	for i, x := range weights {
		if x == 0 {
			continue // its bound is -1
		}
		w += uint64(x)
		bound := (w<<31+total/2)/total - 1
		if uint64(hash>>1) <= bound {
			return i
		}
	}
	return -1
}

// The kernel chooses the hop of each step, whatever the weights, and steps are as many as
// the weights say.
func TestNewSet_isWhatTheKernelChooses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var hops []Hop
		var weights []uint32
		most := 1 + rng.Uint32N(256)
		for i := range 2 + rng.IntN(MaxSteps-1) {
			w := 1 + rng.Uint32N(most)
			hops = append(hops, Hop{Port: uint32(100 + i), Weight: w})
			weights = append(weights, w)
		}
		s, err := NewSet(hops)
		if err != nil || s.N < uint32(len(hops)) || s.N > MaxSteps {
			t.Fatalf("%d hops: %d steps, %v", len(hops), s.N, err)
		}
		visits := make(map[uint32]int)
		for _, step := range s.Steps[:s.N] {
			if got := selected(weights, step.Hash); got < 0 || hops[got].Port != step.Port {
				t.Fatalf("weights %v: hash %#x of port %d is hop %d", weights, step.Hash, step.Port, got)
			}
			visits[step.Port]++
		}
		if len(visits) != len(hops) {
			t.Fatalf("weights %v: %d of %d hops have steps", weights, len(visits), len(hops))
		}
	}
}

// Turns visit a hop as often as it weighs, spread out.
func TestNewSet_weights(t *testing.T) {
	s, err := NewSet([]Hop{{Port: 7, Weight: 30}, {Port: 8, Weight: 10}, {Port: 9, Weight: 20}})
	if err != nil || s.N != 6 {
		t.Fatalf("%d steps, %v, want 6", s.N, err)
	}
	var ports []uint32
	for _, step := range s.Steps[:s.N] {
		ports = append(ports, step.Port)
	}
	for i := range ports {
		if ports[i] == ports[(i+1)%len(ports)] {
			t.Errorf("port %d twice in a row of %v", ports[i], ports)
		}
	}
	for _, few := range [][]Hop{nil, {{Port: 7, Weight: 1}}} {
		if s, err := NewSet(few); s != (Set{}) || err != nil {
			t.Errorf("%v: %d steps, %v, want none", few, s.N, err)
		}
	}
	if _, err := NewSet(make([]Hop, MaxSteps+1)); err == nil {
		t.Error("too many hops are taken")
	}
}

// A hop that has just died moves its packets to those that live, and the others' stay in
// use.
func TestNewSet_deadHop(t *testing.T) {
	s, err := NewSet([]Hop{{Port: 0, Weight: 1}, {Port: 1, Weight: 1}, {Port: 2, Weight: 1}, {Port: 3, Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[int]bool)
	for _, step := range s.Steps[:s.N] {
		used[selected([]uint32{1, 0, 1, 1}, step.Hash)] = true
	}
	if len(used) != 3 || used[1] || used[-1] {
		t.Errorf("hops %v are used", used)
	}
}

func chooser(t *testing.T, rule string) *Chooser {
	t.Helper()
	r, err := Parse(rule)
	if err != nil {
		t.Fatal(err)
	}
	return &Chooser{Rule: r, Seed: 3, Pairs: make(map[uint32]uint32), Flowlets: make(map[uint32]Flowlet), Wait: func(uint32) uint64 { return 0 }}
}

func equalHops(n int) *Set {
	var hops []Hop
	for i := range n {
		hops = append(hops, Hop{Port: uint32(i), Weight: 1})
	}
	s, _ := NewSet(hops)
	return &s
}

func (s *Set) stepOf(hash uint32) int {
	for i, step := range s.Steps[:s.N] {
		if step.Hash == hash {
			return i
		}
	}
	return -1
}

// Over two layers of switches that each take turns by pair, a pair's paths follow each other
// in digit-reversed order: DRB §3.1.2, for k = 8 and the paths' two digits.
func TestChooser_drbIsDigitReversal(t *testing.T) {
	const arity = 4
	edge := chooser(t, "drb")
	above := make([]*Chooser, arity)
	for i := range above {
		above[i] = chooser(t, "drb")
	}
	s := equalHops(arity)
	p := Packet{Src: 1, Dst: 2}
	first := -1
	for i := range 3 * arity * arity {
		up := s.stepOf(edge.Choose(s, nil, p, 0))
		core := s.stepOf(above[up].Choose(s, nil, p, 0))
		if first < 0 {
			first = up*arity + core
		}
		// Both digits count from where the pair's turns begin.
		if got, want := (up-first/arity+arity)%arity, i%arity; got != want {
			t.Fatalf("packet %d: digit %d at the edge, want %d", i, got, want)
		}
		if got, want := (core-first%arity+arity)%arity, i/arity%arity; got != want {
			t.Fatalf("packet %d: digit %d above, want %d", i, got, want)
		}
	}
}

// DRILL takes the port that is free first of those that it looks at, remembers the best, and
// never leaves an idle port for a busy one.
func TestChooser_drill(t *testing.T) {
	s := equalHops(8)
	wait := make([]uint64, 8)
	for _, rule := range []string{"drill", "drill:d=1,m=2", "drill:d=3,m=0", "drill:d=4,m=2"} {
		c := chooser(t, rule)
		looked := make(map[uint32]bool)
		c.Wait = func(port uint32) uint64 { looked[port] = true; return wait[port] }
		e := Engine{Random: 5}
		rng := rand.New(rand.NewPCG(1, 3))
		var last Engine
		for range 5000 {
			for i := range wait {
				wait[i] = rng.Uint64N(100)
			}
			clear(looked)
			last = e
			port := uint32(s.stepOf(c.Choose(s, &e, Packet{}, 0)))
			for p := range looked {
				if wait[p] < wait[port] {
					t.Fatalf("%s: port %d with %d, though %d has %d", rule, port, wait[port], p, wait[p])
				}
			}
			for _, r := range last.Least[:last.Remembered] {
				if !looked[r] {
					t.Fatalf("%s: it has not looked at %d, which it remembers", rule, r)
				}
			}
			if len(looked) > c.Rule.Samples+c.Rule.Memory || !looked[port] {
				t.Fatalf("%s: looked at %v", rule, looked)
			}
			if c.Rule.Memory > 0 && e.Least[0] != port || int(e.Remembered) > c.Rule.Memory {
				t.Fatalf("%s: took %d, remembers %+v", rule, port, e)
			}
		}
	}
}

// A flowlet keeps its hash until a pause, and another flow at its place ends it.
func TestChooser_letflow(t *testing.T) {
	c := chooser(t, "letflow:gap=1us")
	s, e := equalHops(4), Engine{Random: 9}
	p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3}
	now := uint64(10_000)
	first := c.Choose(s, &e, p, now)
	now += 1000
	if c.Choose(s, &e, p, now) != first {
		t.Error("another hash without a pause")
	}
	now += 1001
	if c.Choose(s, &e, p, now) == first {
		t.Error("the same hash behind a pause")
	}
	if c.Begun != 2 || c.Evicted != 0 {
		t.Errorf("%d flowlets, %d evicted", c.Begun, c.Evicted)
	}
	for place, f := range c.Flowlets {
		f.Flow++ // another's
		c.Flowlets[place] = f
	}
	c.Choose(s, &e, p, now)
	if c.Begun != 3 || c.Evicted != 1 {
		t.Errorf("%d flowlets, %d evicted", c.Begun, c.Evicted)
	}
}

// Random rules use all steps alike.
func TestChooser_spreads(t *testing.T) {
	const n = 40_000
	for _, rule := range []string{"rb", "rrb", "drb", "letflow", "drill"} {
		c := chooser(t, rule)
		s, e := equalHops(4), Engine{Random: 11}
		var counts [4]int
		for i := range n {
			p := Packet{Src: uint32(i % 97), Dst: 5, Protocol: 6, Ports: uint32(i)}
			counts[selected([]uint32{1, 1, 1, 1}, c.Choose(s, &e, p, uint64(i+1)))]++
		}
		for i, got := range counts {
			if got < n/4-600 || got > n/4+600 {
				t.Errorf("%s: %d of %d by hop %d", rule, got, n, i)
			}
		}
	}
}

// Whatever groups and weights hops have, a group's steps follow each other, each says where
// they are, and the kernel chooses the step's hop.
func TestNewSet_groups(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for range 500 {
		var hops []Hop
		var weights []uint32
		of := make(map[uint32]uint32) // port: group
		for i := range 2 + rng.IntN(40) {
			h := Hop{Port: uint32(100 + i), Weight: 1 + rng.Uint32N(9), Group: rng.Uint32N(12)}
			hops, weights = append(hops, h), append(weights, h.Weight)
			of[h.Port] = h.Group
		}
		s, err := NewSet(hops)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint32]Step)
		for i, step := range s.Steps[:s.N] {
			first := s.Steps[step.First]
			if i < int(step.First) || i >= int(step.First)+int(step.Count) || of[first.Port] != of[step.Port] || first.Count != step.Count || first.Group != step.Group {
				t.Fatalf("%+v: step %d is %+v, the group's first %+v", hops, i, step, first)
			}
			if got := selected(weights, step.Hash); hops[got].Port != step.Port {
				t.Fatalf("%+v: step %d leads by hop %d", hops, i, got)
			}
			if other, ok := seen[of[step.Port]]; ok && other.First != step.First {
				t.Fatalf("%+v: group %d is at %d and %d", hops, of[step.Port], other.First, step.First)
			}
			seen[of[step.Port]] = step
		}
		if len(seen) != int(s.Groups) {
			t.Fatalf("%+v: %d groups, want %d", hops, s.Groups, len(seen))
		}
	}
}

// DRILL §3.4: of the paths from L3 to L1 P0 is one group, of weight 1, P1 and P2 another one, of
// weight 2. A flow stays in its group, whatever waits, and goes the shorter way in it.
func TestChooser_drillInGroups(t *testing.T) {
	s, err := NewSet([]Hop{{Port: 0, Weight: 1, Group: 0}, {Port: 1, Weight: 1, Group: 1}, {Port: 2, Weight: 1, Group: 1}})
	if err != nil {
		t.Fatal(err)
	}
	c := chooser(t, "drill:d=4,m=1")
	var wait [3]uint64
	c.Wait = func(port uint32) uint64 { return wait[port] }
	engines := [2]Engine{{Random: 3}, {Random: 4}}
	rng := rand.New(rand.NewPCG(1, 8))
	const flows, packets = 3000, 20
	first, longer := 0, 0
	for f := range flows {
		p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: uint32(f)}
		group := c.Group(&s, p).Group
		if group == 0 {
			first++
		}
		for range packets {
			wait = [3]uint64{rng.Uint64N(10), rng.Uint64N(10), rng.Uint64N(10)}
			port := s.Steps[s.stepOf(c.Choose(&s, &engines[group], p, 0))].Port
			if (port == 0) != (group == 0) {
				t.Fatalf("a flow of group %d goes by port %d", group, port)
			}
			if group == 1 && wait[port] > min(wait[1], wait[2]) {
				longer++
			}
		}
	}
	if first < flows/3-110 || first > flows/3+110 {
		t.Errorf("%d of %d flows by P0, want a third", first, flows)
	}
	// Four samples miss one of two with a probability of 1/8, half of these the shorter one.
	if longer > flows*packets/12 {
		t.Errorf("%d of %d packets went the longer way", longer, flows*packets)
	}
}
