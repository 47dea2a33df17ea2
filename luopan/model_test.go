package luopan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model says what a Table with a fixed expiry, whose switches write queues, must
// choose. It keeps every round it has seen and all that was sent, and looks at all of
// the last ones each time.
type model struct {
	t       testing.TB
	table   *Table
	expiry  time.Duration
	unit    int64
	samples int
	only    bool // Config.SamplesOnly
	racks   map[uint32]*modelRack
	asked   []modelProbe // ever
}

// modelRate is slow enough for all shares to be seen, in bits per second.
const modelRate = 2e9

type modelProbe struct {
	Probe
	at    time.Duration
	rack  *modelRack
	round int
}

type modelRack struct {
	rounds []*modelRound
	used   int // of rounds: the last with an answer, -1 at first
	rtt    time.Duration
	past   []uint64 // tokens of probes that were not answered in their rounds, the latest 8
	paths  []int    // of the last choice
	volume int64    // sent since the last round
	rate   float64
	usual  int64 // what samples have before them, smoothed
}

type modelRound struct {
	paths    []int
	queues   map[int]int64
	sent     map[int]int64 // by path, since the first answer
	asked    time.Duration
	answered time.Duration
	until    time.Duration
}

func newModel(t testing.TB, samples int, seed uint64) *model {
	m := &model{t: t, expiry: 50 * us, unit: 1000, samples: samples, only: seed%4 == 3, racks: make(map[uint32]*modelRack)}
	var err error
	m.table, err = New(Config{Samples: samples, Expiry: m.expiry, Idle: time.Hour, QueueUnit: int(m.unit), Budget: maxBudget, Seed: seed, RateBits: modelRate, SamplesOnly: m.only})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) choose(dst uint32, paths []int, now time.Duration) {
	r := m.racks[dst]
	if r == nil {
		r = &modelRack{used: -1}
		m.racks[dst] = r
	}
	r.paths = paths
	want, known := m.preferred(r, now)
	got, sampled := m.table.Choose(dst, dst, paths, now)
	if !slices.Contains(paths, got) {
		m.t.Fatalf("path %d is not of %v", got, paths)
	}
	if sampled != (want >= 0) || sampled && got != want {
		m.t.Fatalf("to %d at %v: path %d, sampled %v; the model says %d", dst, now, got, sampled, want)
	}
	if !sampled && !m.only && slices.Contains(known, got) {
		m.t.Fatalf("to %d at %v: path %d, as if it were not known", dst, now, got)
	}
}

// preferred is the sampled path to be taken, -1 for any other, and all that are known.
func (m *model) preferred(r *modelRack, now time.Duration) (want int, known []int) {
	if r.used < 0 || now >= r.rounds[r.used].until {
		return -1, nil
	}
	round := r.rounds[r.used]
	share := min(1, r.rate/(float64(m.samples)*modelRate/8))
	filled := func(p int) int64 {
		return int64(share*float64(round.queues[p]-r.usual)) + round.sent[p]
	}
	for _, p := range round.paths {
		if _, ok := round.queues[p]; ok && slices.Contains(r.paths, p) {
			known = append(known, p)
		}
	}
	if len(known) == 0 {
		return -1, nil
	}
	if m.only {
		return slices.MinFunc(known, func(p, q int) int { return cmp.Compare(round.queues[p], round.queues[q]) }), known
	}
	want = slices.MinFunc(known, func(p, q int) int { // equals: the first one asked about
		return cmp.Or(cmp.Compare(filled(p), filled(q)), cmp.Compare(round.queues[p], round.queues[q]))
	})
	others, loose := int64(len(r.paths)-len(known)), int64(0)
	for p, n := range round.sent {
		gone := slices.Contains(round.paths, p) && !slices.Contains(r.paths, p)
		if !slices.Contains(known, p) && !gone {
			loose += n
		}
	}
	if others > 0 && filled(want) > loose/others {
		return -1, known
	}
	return want, known
}

func (m *model) sent(dst uint32, path, bytes int) {
	m.table.Sent(dst, path, bytes)
	r := m.racks[dst]
	if r == nil || bytes <= 0 {
		return
	}
	r.volume += int64(bytes)
	if r.used >= 0 {
		r.rounds[r.used].sent[path] += int64(bytes)
	}
}

func (m *model) probes(now time.Duration) {
	begun := make(map[uint32]*modelRound)
	m.table.Probes(now, func(p Probe) {
		r := m.racks[p.Destination]
		round := begun[p.Destination]
		if round == nil {
			round = &modelRound{queues: make(map[int]int64), sent: make(map[int]int64), asked: now}
			begun[p.Destination] = round
			m.retire(r)
			m.review(r, now)
			r.rounds = append(r.rounds, round)
		}
		if slices.Contains(round.paths, p.Path) {
			m.t.Fatalf("path %d is probed twice", p.Path)
		}
		round.paths = append(round.paths, p.Path)
		m.asked = append(m.asked, modelProbe{p, now, r, len(r.rounds) - 1})
	})
	if next := m.table.Next(); next <= now {
		m.t.Fatalf("at %v something was due at %v still", now, next)
	}
}

// review has what a rack's latest round has shown taken note of.
func (m *model) review(r *modelRack, now time.Duration) {
	if len(r.rounds) > 0 {
		round := r.rounds[len(r.rounds)-1]
		if took := now - round.asked; took > 0 {
			rate := float64(r.volume) / took.Seconds()
			if r.rate == 0 {
				r.rate = rate
			}
			r.rate += (rate - r.rate) / 4
		}
		sum, n := int64(0), int64(0)
		for _, p := range round.paths {
			if !slices.Contains(r.paths, p) {
				continue
			}
			n++
			if q, ok := round.queues[p]; ok {
				sum += q
			} else {
				sum += 127 * m.unit
			}
		}
		if len(round.queues) > 0 {
			r.usual += (sum/max(n, 1) - r.usual) / 4
		}
	}
	r.volume = 0
}

// retire has a rack's latest probes without an answer remembered.
func (m *model) retire(r *modelRack) {
	for _, p := range m.asked {
		if p.rack != r || p.round != len(r.rounds)-1 {
			continue
		}
		if _, answered := r.rounds[p.round].queues[p.Path]; !answered {
			r.past = append(r.past, p.Token)
		}
	}
	r.past = r.past[max(0, len(r.past)-8):]
}

func (m *model) answer(which int, queue uint8, now time.Duration) {
	if len(m.asked) == 0 {
		return
	}
	p := m.asked[which%len(m.asked)]
	r := p.rack
	round := r.rounds[p.round]
	_, before := round.queues[p.Path]
	want := p.round == len(r.rounds)-1 && !before
	was := m.table.Stats()
	got := m.table.Answer(Answer{Token: p.Token, Path: p.Path, Queue: queue, Meters: 1}, p.Host, now)
	if got != want {
		m.t.Fatalf("the answer to %+v at %v: %v, the model says %v", p, now, got, want)
	}
	if i := slices.Index(r.past, p.Token); i >= 0 {
		r.past[i] = 0
	} else if !want {
		if after := m.table.Stats(); after.Late != was.Late {
			m.t.Fatalf("the answer to %+v at %v counts as late, the model knows nothing of it", p, now)
		}
		return
	}
	rtt := max(now-p.at, 1)
	if r.rtt == 0 {
		r.rtt = rtt
	}
	r.rtt += (rtt - r.rtt) / 8
	if !want {
		if after := m.table.Stats(); after.Late != was.Late+1 {
			m.t.Fatalf("the answer to %+v at %v is not late: %+v", p, now, after)
		}
		return
	}
	if len(round.queues) == 0 {
		r.used = p.round
		round.answered = now
		round.until = now + m.expiry + max(m.expiry, 2*r.rtt)
	}
	round.queues[p.Path] = int64(min(queue, 127)) * m.unit
}

// step does one thing that op and x name.
func (m *model) step(op, x byte, now *time.Duration) {
	lists := [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5}, {0, 7}, {2, 3, 4, 5, 6}}
	dst := uint32(x % 3)
	switch op % 8 {
	case 0, 1:
		m.choose(dst, lists[int(x/3)%len(lists)], *now)
	case 2:
		m.choose(dst, lists[0], *now)
	case 3:
		m.sent(dst, int(x/3)%8, int(x)*100)
	case 4:
		m.probes(*now)
	case 5:
		m.answer(len(m.asked)-1-int(x/4)%max(len(m.asked), 1), x%4*10, *now)
	case 6:
		m.answer(len(m.asked)-1-int(x)%6+6, x, *now)
	case 7:
		*now += time.Duration(x) * us / 8
	}
}

func TestTable_isTheModel(t *testing.T) {
	silent := uint64(0)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := newModel(t, 1+int(seed%5), seed)
		now := time.Duration(0)
		for range 3000 {
			m.step(byte(rng.Uint32()), byte(rng.Uint32()), &now)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if s := m.table.Stats(); s.Sampled < 50 || s.Unsampled < 50 || s.Late+s.Unknown < 10 {
			t.Fatalf("seed %d shows little: %+v", seed, s)
		}
		silent += m.table.Stats().Silent
	}
	if silent < 60 {
		t.Errorf("%d rounds in all were silent", silent)
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 4, 0, 7, 99, 5, 2, 2, 1, 3, 9, 4, 0, 5, 0, 6, 1})
	f.Add([]byte{3, 0, 0, 3, 4, 0, 5, 1, 7, 255, 7, 255, 4, 0, 0, 9, 2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			return
		}
		m := newModel(t, 1+len(data)%4, 1)
		now := time.Duration(0)
		for ; len(data) >= 2; data = data[2:] {
			m.step(data[0], data[1], &now)
		}
		m.table.Destinations()
	})
}
