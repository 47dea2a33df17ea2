package luopan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNew_badConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		config Config
		says   string // empty: fine
	}{
		{Config{}, ""},
		{Config{Samples: 36, Expiry: time.Second, MaxDestinations: 65536, Budget: 1, QueueUnit: 1, RateBits: 1e3}, ""},
		{Config{MinExpiry: time.Second}, ""}, // the default maximum follows
		{Config{Samples: -1}, "Samples is -1, must be from 1 to 36"},
		{Config{Samples: 37}, "Samples is 37"},
		{Config{Expiry: 999}, "Expiry is 999ns, must be from 1µs"},
		{Config{MinExpiry: -1}, "MinExpiry is -1ns"},
		{Config{MinExpiry: 2 * time.Second, MaxExpiry: time.Second}, "MaxExpiry is 1s, must be from MinExpiry, 2s"},
		{Config{MaxExpiry: 2 * time.Hour}, "MaxExpiry is 2h"},
		{Config{Idle: -1}, "Idle is -1ns"},
		{Config{MaxDestinations: 65537}, "MaxDestinations is 65537, must be from 1 to 65536"},
		{Config{Budget: .5}, "Budget is 0.5"},
		{Config{QueueUnit: -5}, "QueueUnit is -5"},
		{Config{RateBits: -5}, "RateBits is -5"},
	} {
		_, err := New(c.config)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// The idlest go first, and never more are known than may be.
func TestTable_evicts(t *testing.T) {
	const most = 16 // so that an eviction looks at all
	table := newTest(t, Config{MaxDestinations: most})
	paths := numbers(4)
	rng := rand.New(rand.NewPCG(1, 2))
	used := make(map[uint32]time.Duration)
	evicted := uint64(0)
	for i := range 5000 {
		now := time.Duration(i) * us
		dst := uint32(rng.IntN(40))
		if _, known := used[dst]; !known && len(used) == most {
			idlest := slices.MinFunc(keys(used), func(a, b uint32) int { return cmp.Compare(used[a], used[b]) })
			delete(used, idlest)
			evicted++
		}
		used[dst] = now
		table.Choose(dst, dst, paths, now)
		table.probes(now)
		var know []uint32
		for _, d := range table.Destinations() {
			know = append(know, d.Destination)
		}
		want := keys(used)
		slices.Sort(want)
		if !slices.Equal(know, want) {
			t.Fatalf("at %v known %v, want %v", now, know, want)
		}
	}
	if s := table.Stats(); s.Evicted != evicted || s.Destinations != most {
		t.Errorf("%+v, want %d evicted", s, evicted)
	}
}

func keys(m map[uint32]time.Duration) (all []uint32) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Far more racks than there is room for: the bound holds, and so does memory.
func TestTable_boundAt10000(t *testing.T) {
	const most = 10_000
	table := newTest(t, Config{MaxDestinations: most, Budget: maxBudget})
	paths := numbers(8)
	for dst := range uint32(3 * most) {
		now := time.Duration(dst) * us
		table.Choose(dst, dst, paths, now)
		table.answerAll(now, func(p Probe) Answer { return queue(1) })
	}
	if s := table.Stats(); s.Destinations != most || s.Evicted != 2*most || len(table.destinations) != most || table.due.Len() != most {
		t.Errorf("%+v, %d slots", s, len(table.destinations))
	}
}

// Without choices there are fewer probes, and then none.
func TestTable_forgetsTheIdle(t *testing.T) {
	table := newTest(t, Config{Idle: 10 * time.Millisecond})
	table.Choose(1, 1, numbers(4), 0)
	for now := time.Duration(0); now != Never; now = table.Next() {
		if now > 20*time.Millisecond {
			t.Fatalf("%+v", table.Stats())
		}
		table.answerAll(now, func(Probe) Answer { return queue(3) })
	}
	s := table.Stats()
	if s.Idle != 1 || s.Destinations != 0 || len(table.Destinations()) != 0 || s.Rounds > 30 { // 250 at MinExpiry
		t.Errorf("%+v", s)
	}
	// Its slot is used again, and answers to it of old are unknown.
	table.Choose(2, 2, numbers(4), time.Second)
	if len(table.destinations) != 1 {
		t.Errorf("%d slots", len(table.destinations))
	}
}

// However many racks are due, probes keep to the budget, and all have their turn.
func TestTable_budget(t *testing.T) {
	const budget, racks = 1000, 200
	table := newTest(t, Config{Budget: budget, Expiry: us})
	asked := make(map[uint32]int)
	sent := 0
	for now := time.Duration(0); now < 5*time.Second; now += 500 * us {
		for dst := range uint32(racks) {
			table.Choose(dst, dst, numbers(4), now)
		}
		for _, p := range table.probes(now) {
			sent++
			asked[p.Destination]++
			table.Answer(answer(p, queue(1)), p.Host, now)
		}
		if most := int(now.Seconds()*budget) + 20 + 2; sent > most {
			t.Fatalf("%d probes by %v, at most %d", sent, now, most)
		}
	}
	if sent < 4900 || table.Stats().Deferred == 0 {
		t.Errorf("%d probes in 5 s", sent)
	}
	for dst := range uint32(racks) {
		if n := asked[dst]; n < 20 || n > 30 { // 25 each
			t.Errorf("%d was probed %d times", dst, n)
		}
	}
}

func TestTable_status(t *testing.T) {
	table := newTest(t, Config{Expiry: time.Second})
	paths := []int{1, 2, 70}
	table.Choose(9, 9, paths, 0)
	table.Choose(4, 4, paths, 0)
	for _, p := range table.probes(0) {
		table.Answer(answer(p, queue(uint8(p.Path))), p.Host, 5*us)
	}
	for i := range table.destinations {
		table.destinations[i].share, table.destinations[i].typical = 1, table.destinations[i].fair
	}
	p, _ := table.Choose(4, 4, paths, 9*us)
	table.Sent(4, p, 100)
	all := table.Destinations()
	if len(all) != 2 || all[0].Destination != 4 || all[1].Destination != 9 {
		t.Fatalf("%+v", all)
	}
	d := all[0]
	total := d.OtherChoices
	for _, n := range d.Choices {
		total += n
	}
	best := d.Samples[0]
	if total != 2 || d.Unsampled != 1 || d.RTT != 5*us || d.Metric != QueueBytes || len(d.Samples) != 2 ||
		best.Path != p || best.Age != 4*us || best.Sent != 100 || best.Queue != uint8(p) || best.Queue > d.Samples[1].Queue {
		t.Errorf("%+v", d)
	}
	if path, until, ok := table.Best(4, 9*us); !ok || path != p || until != 5*us+2*time.Second {
		t.Errorf("best %d until %v, %v", path, until, ok)
	}
	if _, _, ok := table.Best(4, 3*time.Second); ok {
		t.Error("best of what is too old")
	}
	if _, _, ok := table.Best(77, 0); ok {
		t.Error("best of what is not known")
	}
	if m := QueueBytes.String() + OneWay.String() + RoundTrip.String() + NoMetric.String() + Metric(9).String(); !strings.Contains(m, "none") {
		t.Error(m)
	}
}
