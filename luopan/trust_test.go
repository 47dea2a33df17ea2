package luopan

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestAnswer_refusesLies(t *testing.T) {
	table := newTest(t, Config{Expiry: 40 * us})
	paths := numbers(8)
	table.Choose(8, 8, paths, 0)
	table.Choose(9, 9, paths, 0)
	probes := table.probes(0)
	p, other := probes[0], probes[1]
	foreign := probes[2]
	for _, c := range []struct {
		name   string
		answer Answer
		from   uint32
		count  func(Stats) uint64
	}{
		{"another path", Answer{Token: p.Token, Path: other.Path, Meters: 1}, p.Host, func(s Stats) uint64 { return s.WrongPath }},
		{"no path", Answer{Token: p.Token, Path: -1}, p.Host, func(s Stats) uint64 { return s.WrongPath }},
		{"somebody else", answer(p, queue(0)), 77, func(s Stats) uint64 { return s.WrongHost }},
		{"of another rack", answer(foreign, queue(0)), p.Host, func(s Stats) uint64 { return s.WrongHost }},
		{"never asked", Answer{Token: p.Token ^ 1<<63, Path: p.Path}, p.Host, func(s Stats) uint64 { return s.Unknown }},
		{"no such sample", Answer{Token: p.Token | 63, Path: p.Path}, p.Host, func(s Stats) uint64 { return s.Unknown }},
		{"no such rack", Answer{Token: p.Token | 0xffff<<indexBits, Path: p.Path}, p.Host, func(s Stats) uint64 { return s.Unknown }},
	} {
		before := c.count(table.Stats())
		if table.Answer(c.answer, c.from, us) || c.count(table.Stats()) != before+1 {
			t.Errorf("%s: %+v", c.name, table.Stats())
		}
	}
	if s := table.Stats(); s.Answers != 0 {
		t.Fatalf("%+v", s)
	}
	if !table.Answer(answer(p, queue(50)), p.Host, us) {
		t.Fatal("the truth is refused")
	}
	if table.Answer(answer(p, queue(0)), p.Host, us) || table.Stats().Replayed != 1 {
		t.Errorf("a replay: %+v", table.Stats())
	}
	if d := table.Destinations()[0]; d.Samples[0].Queue != 50 {
		t.Errorf("%+v", d)
	}
}

// Tokens do not repeat, and their bits that are not numbers are even.
func TestToken_isRandom(t *testing.T) {
	random := newSource(7)
	const n = 20_000
	seen := make(map[uint64]bool)
	var ones [64]int
	for i := range n {
		slot, index := int32(i%maxDestinations), i%MaxSamples
		token := newToken(random, slot, index)
		if s, x := openToken(token); s != int(slot) || x != index {
			t.Fatalf("%d of %d became %d of %d", index, slot, x, s)
		}
		seen[token>>(slotBits+indexBits)] = true
		for b := range ones {
			ones[b] += int(token >> b & 1)
		}
	}
	if len(seen) != n {
		t.Errorf("%d tokens of %d", len(seen), n)
	}
	for b := slotBits + indexBits; b < 64; b++ {
		if ones[b] < n/2-400 || ones[b] > n/2+400 { // its deviation is 71
			t.Errorf("bit %d is set in %d of %d", b, ones[b], n)
		}
	}
	if newToken(newSource(8), 0, 0) == newToken(newSource(9), 0, 0) {
		t.Error("another seed, the same token")
	}
}

// One host of four in a rack lies: it reports empty queues for all probes, and makes up
// everything else that an answer can say. It cannot make flowcells take a dead path, nor
// affect other racks. Its gain on a path that it wants to fill is bounded by how often
// that path is drawn and the liar is asked.
func TestAnswer_damageOfALiar(t *testing.T) {
	const n, dead, victim, liar = 8, 3, 5, 100
	shares := func(lie bool) (rack, other [n]float64) {
		table := newTest(t, Config{Expiry: 40 * us, Budget: 1e6})
		rng := rand.New(rand.NewPCG(3, 3))
		paths := numbers(n)
		const rounds = 20_000
		for i := range rounds {
			now := time.Duration(i) * 20 * us
			p, _ := table.Choose(1, liar+uint32(i%4), paths, now)
			rack[p] += 1. / rounds
			p, _ = table.Choose(2, 7, paths, now)
			other[p] += 1. / rounds
			for _, p := range table.probes(now) {
				if p.Path == dead {
					continue // its probes do not arrive, and nobody knows their tokens
				}
				is := queue(uint8(20 + rng.IntN(10)))
				if p.Path == victim {
					is = queue(60) // congested, in truth
				}
				if lie && p.Host == liar {
					is = queue(0)
					if p.Path != victim {
						is = queue(127)
					}
					// It tries its luck with the dead path, too, and a flood.
					table.Answer(Answer{Token: p.Token, Path: dead, Meters: 1}, liar, now)
					for range 20 {
						table.Answer(Answer{Token: p.Token ^ rng.Uint64()<<22, Path: dead, Meters: 1}, liar, now)
					}
				}
				table.Answer(answer(p, is), p.Host, now)
			}
		}
		return rack, other
	}
	honest, honestOther := shares(false)
	lied, liedOther := shares(true)
	t.Logf("honest %.3f", honest)
	t.Logf("lied   %.3f", lied)
	// A quarter of the rounds are the liar's, and a quarter of these have drawn the
	// victim: d/n.
	if most := honest[victim] + 1./4*2/n + 0.02; lied[victim] > most {
		t.Errorf("%.3f by the path that it wants to fill, at most %.3f", lied[victim], most)
	}
	if lied[dead] > honest[dead]+0.02 {
		t.Errorf("%.3f by a dead path, %.3f without lies", lied[dead], honest[dead])
	}
	for p := range n {
		if d := liedOther[p] - honestOther[p]; d > 0.02 || d < -0.02 {
			t.Errorf("%.3f of another rack's flowcells by path %d, %.3f without lies", liedOther[p], p, honestOther[p])
		}
	}
}

// Whatever a host says of times, sampling becomes neither slower than its bounds
// nor faster, and nothing panics.
func TestAnswer_absurdTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	table := newTest(t, Config{Budget: 1000})
	paths := numbers(8)
	now := time.Duration(0)
	rounds := 0
	for now < 10*time.Second {
		table.Choose(1, 1, paths, now)
		for _, p := range table.probes(now) {
			absurd := []time.Duration{0, 1, -1, 1<<63 - 1, -1 << 63, time.Duration(rng.Uint64())}
			table.Answer(answer(p, Answer{Queue: uint8(rng.Uint32()), Meters: uint8(rng.IntN(2)), Marked: rng.IntN(2) == 0,
				Received: absurd[rng.IntN(len(absurd))]}), 1, now+time.Duration(rng.IntN(1000))*us)
		}
		rounds++
		if wait := table.Next() - now; wait > 2*maxPatience {
			t.Fatalf("next in %v", wait)
		}
		now = max(now+us, table.Next())
	}
	if s := table.Stats(); s.Probes > 11_000 || s.Probes < 20 {
		t.Errorf("%+v in ten seconds", s)
	}
}
