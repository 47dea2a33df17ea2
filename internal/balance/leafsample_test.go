package balance

import "testing"

// A flowcell keeps its path for 64 KB, and the next one takes the best sample's.
func TestLeaf_luopan(t *testing.T) {
	l, r := newLeaf(t, "luopan"), leafRack(t, 7, 8, upTo(8)...)
	now := uint64(1e12)
	p := Packet{Src: 1, Dst: 2, Protocol: 6, Ports: 3<<16 | 4}
	token := uint64(0)
	ask := func() []uint32 {
		return l.Ask(r, [4]byte{1}, [4]byte{2}, now, func() uint64 { token++; return token })
	}
	first := l.Choose(r, p, 1000, now)
	asked := ask()
	if len(asked) != 2 || asked[0] == asked[1] || ask() != nil {
		t.Fatalf("asked %v", asked)
	}
	answer := func(i int, queue uint8) bool {
		return l.Learn(7, LeafAnswer{From: [4]byte{2}, To: [4]byte{1}, Token: l.Round[7].Token[i], Path: asked[i], Queue: queue, Meters: 1}, now)
	}
	now += 50_000
	if !answer(0, 9) || !answer(1, 3) || answer(1, 0) {
		t.Fatal("answers")
	}
	sent := uint32(1000)
	for ; sent+1000 <= FlowcellBytes; sent += 1000 {
		if path := l.Choose(r, p, 1000, now); path != first {
			t.Fatalf("path %d within a flowcell of path %d", path, first)
		}
	}
	if path := l.Choose(r, p, 1000, now); path != asked[1] || l.Begun != 2 || l.Guided != 1 {
		t.Errorf("path %d, want the best, %d; %d begun, %d guided", path, asked[1], l.Begun, l.Guided)
	}
	if s := l.Round[7]; s.RTT != 50_000 || s.Due != now+50_000 { // the expiry is a round trip, and 40 µs at least
		t.Errorf("%+v at %d", s, now)
	}
	// Until the next round's answer is due, an expiry and a round trip later, it decides. Then
	// nothing does: paths are random (§3.2).
	for _, c := range []struct {
		after  uint64
		guided uint64
	}{{99_000, 51}, {2_000, 51}, {1e9, 51}} {
		now += c.after
		taken := make(map[uint32]int)
		for range 50 {
			p.Ports++
			taken[l.Choose(r, p, 1000, now)]++
		}
		if l.Guided != c.guided || c.after != 99_000 && len(taken) < 6 {
			t.Errorf("after %d ns more: %d guided, paths %v", c.after, l.Guided, taken)
		}
	}
}

// Queues count if all samples of a round have one. A queue is not compared with a time.
func TestLeaf_luopanComparesLikeWithLike(t *testing.T) {
	for _, c := range []struct {
		name   string
		meters [3]uint8
		want   int
	}{{"all metered", [3]uint8{1, 2, 1}, 2}, {"one is not", [3]uint8{1, 0, 1}, 0}, {"the last is not", [3]uint8{1, 1, 0}, 0}, {"none", [3]uint8{}, 0}} {
		l, r := newLeaf(t, "luopan:d=3"), leafRack(t, 7, 8, upTo(8)...)
		now, token := uint64(1e12), uint64(0)
		asked := l.Ask(r, [4]byte{1}, [4]byte{2}, now, func() uint64 { token++; return token })
		for i, queue := range []uint8{127, 9, 3} {
			now += 1000
			if !l.Learn(7, LeafAnswer{From: [4]byte{2}, To: [4]byte{1}, Token: uint64(i + 1), Path: asked[i], Queue: queue * min(1, c.meters[i]), Meters: c.meters[i]}, now) {
				t.Fatal("an answer does not count")
			}
		}
		if best := l.Round[7].Best; best != asked[c.want] {
			t.Errorf("%s: the best is %d, want %d of %v", c.name, best, asked[c.want], asked)
		}
	}
}

// An answer counts only with its token, from its host, about its path, and once. Racks that
// never answer are asked more and more seldom.
func TestLeaf_luopanBelievesOnlyAnswers(t *testing.T) {
	l, r := newLeaf(t, "luopan:d=1"), leafRack(t, 7, 2, 0, 1)
	now := uint64(1e12)
	paths := l.Ask(r, [4]byte{1}, [4]byte{2}, now, func() uint64 { return 77 })
	good := LeafAnswer{From: [4]byte{2}, To: [4]byte{1}, Token: 77, Path: paths[0]}
	for _, change := range []func(*LeafAnswer){
		func(a *LeafAnswer) { a.From[3]++ }, func(a *LeafAnswer) { a.To[3]++ }, func(a *LeafAnswer) { a.Token++ },
		func(a *LeafAnswer) { a.Path ^= 1 }, func(a *LeafAnswer) { a.Token = 0 },
	} {
		bad := good
		change(&bad)
		if l.Learn(7, bad, now) {
			t.Errorf("%+v counts", bad)
		}
	}
	if l.Learn(8, good, now) || !l.Learn(7, good, now) || l.Learn(7, good, now) {
		t.Error("an answer counts for another rack, not at all, or twice")
	}
	l.Round[7] = LeafSamples{}
	asked := 0
	for range 10_000 { // 10 s
		now += 1e6
		if l.Ask(r, [4]byte{1}, [4]byte{2}, now, func() uint64 { return 77 }) != nil {
			asked++
		}
	}
	if asked < 10 || asked > 30 {
		t.Errorf("a silent rack was asked %d times in 10 s", asked)
	}
}
