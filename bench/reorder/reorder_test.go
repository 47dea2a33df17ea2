package reorder

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weft/resequencer"
)

// small measures little of some cases.
func small(t *testing.T, o Options) []Result {
	t.Helper()
	o.Rounds, o.Packets = 2, 3000
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun_everyCaseAndImpl(t *testing.T) {
	results := small(t, Options{Cases: Cases(), Impls: Impls(), Flows: []int{1, 300}})
	if want := (6 + 3*2) * len(Impls()); len(results) != want {
		t.Errorf("%d results, want %d", len(results), want)
	}
	for _, r := range results {
		gro := r.Impl == "gvisor-gro"
		cells := strings.HasPrefix(r.Case, "cells-")
		inOrder := r.Flows > 1 || r.Case == "in-order" || strings.HasPrefix(r.Case, "bursts-") || r.Case == "receive-core"
		if r.NsPerPacket <= 0 || r.NsPerPacketMin > r.NsPerPacket || r.NsPerPacketMax < r.NsPerPacket {
			t.Errorf("%+v: times", r)
		}
		// Not 0, for the runtime allocates something now and then, too.
		if strings.Contains("presto sequence juggler", r.Impl) && r.AllocsPerPacket > 0.01 {
			t.Errorf("%+v: allocations", r)
		}
		if r.HeldBytesMax > 16*45*packetSize { // what interleaves, or overtakes
			t.Errorf("%+v: held", r)
		}
		if holds := !inOrder || gro || r.Impl == "juggler"; holds != (r.HeldBytesMax > 0) {
			t.Errorf("%+v: held, want some: %v", r, holds)
		}
		switch {
		case gro && cells && r.OutOfOrder < 0.7:
			t.Errorf("%+v: of interleaved flowcells nearly all are out of order", r)
		case !cells && (r.OutOfOrder > 0.02 || inOrder && r.OutOfOrder > 0):
			t.Errorf("%+v: out of order", r)
		case !gro && !strings.HasPrefix(r.Case, "loss") && r.OutOfOrder > 0:
			t.Errorf("%+v: out of order", r)
		}
		if merges := gro && !cells; merges != (r.DeliveredSegments > 1.1) {
			t.Errorf("%+v: segments", r)
		}
		if r.Config != "" {
			t.Errorf("%+v: config", r)
		}
	}
}

// Counts come of the input, which is the same in every run.
func TestRun_repeatable(t *testing.T) {
	cases, _ := SelectCases([]string{"reordered-1pct", "loss-1pct", "bursts-zipf"})
	o := Options{Cases: cases, Impls: Impls(), Flows: []int{50}}
	a, b := small(t, o), small(t, o)
	for i := range a {
		if a[i].HeldBytesMax != b[i].HeldBytesMax || a[i].OutOfOrder != b[i].OutOfOrder || a[i].DeliveredSegments != b[i].DeliveredSegments {
			t.Errorf("%+v, then %+v", a[i], b[i])
		}
	}
}

// A buffer for more flows than its default is told so, and says it.
func TestRun_raisesFlows(t *testing.T) {
	cases, _ := SelectCases([]string{"receive-core"})
	impls, _ := SelectImpls([]string{"presto", "sorted-list"})
	r := small(t, Options{Cases: cases, Impls: impls, Flows: []int{resequencer.DefaultFlows, resequencer.DefaultFlows + 1}})
	if r[0].Config != "" || r[2].Config != "Flows=65537" || r[3].Config != "" {
		t.Errorf("%q %q %q", r[0].Config, r[2].Config, r[3].Config)
	}
}

// faulty notes who is given what, and delivers at once what spoil leaves of it.
type faulty struct {
	name  string
	turns *[]string
	given []int
	out   []int
	spoil func([]int) []int
}

func (*faulty) prepare(*batch) {}
func (s *faulty) push(b *batch) {
	if n := len(*s.turns); n == 0 || (*s.turns)[n-1] != s.name {
		*s.turns = append(*s.turns, s.name)
	}
	s.given = append(s.given, b.names...)
	s.out = s.spoil(slices.Clone(b.names))
}
func (s *faulty) collect(*batch) ([]int, int, error) {
	names := s.out
	s.out = nil
	return names, len(names), nil
}
func (*faulty) flush()              {}
func (*faulty) state() (int, error) { return 0, nil }

func TestRun_roundsAlternate(t *testing.T) {
	var turns []string
	var all []*faulty
	impl := func(name string) Impl {
		return Impl{Name: name, make: func(Case, int) subject {
			s := &faulty{name: name, turns: &turns, spoil: func(n []int) []int { return n }}
			all = append(all, s)
			return s
		}}
	}
	var steps []int
	cases, _ := SelectCases([]string{"in-order"})
	_, err := Run(t.Context(), Options{
		Cases: cases, Impls: []Impl{impl("a"), impl("b")}, Rounds: 3, Packets: 100,
		Progress: func(done, total int) { steps = append(steps, done, total) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, ""); got != "abababab" {
		t.Errorf("turns %s, want one to warm up and three rounds", got)
	}
	if !slices.Equal(all[0].given, all[1].given) || len(all[0].given) != 4*128 {
		t.Errorf("given %d and %d packets, want the same 4 rounds of two batches", len(all[0].given), len(all[1].given))
	}
	if len(steps) != 16 || steps[14] != 8 || steps[15] != 8 {
		t.Errorf("progress %v", steps)
	}
}

func TestRun_failsWhereAPacketDoes(t *testing.T) {
	for want, spoil := range map[string]func([]int) []int{
		"never delivered": func(n []int) []int { return n[1:] },
		"twice":           func(n []int) []int { return append(n, n[0]) },
		"after segment":   func(n []int) []int { n[1], n[2] = n[2], n[1]; return n },
	} {
		var turns []string
		bad := Impl{Name: "bad", orders: true, make: func(Case, int) subject { return &faulty{turns: &turns, spoil: spoil} }}
		cases, _ := SelectCases([]string{"bursts-uniform"})
		_, err := Run(t.Context(), Options{Cases: cases, Impls: []Impl{bad}, Flows: []int{3}, Rounds: 1, Packets: 100})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "bursts-uniform, bad, 3 flows") {
			t.Errorf("error %v, want %q and where", err, want)
		}
	}
}

func TestRun_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{
		Cases: Cases(), Impls: Impls(), Rounds: 1000, Packets: 1000,
		Progress: func(done, _ int) {
			if done == 3 {
				cancel()
			}
		},
	})
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("error %v", err)
	}
}

func TestSelect(t *testing.T) {
	if all, err := SelectCases(nil); len(all) != len(Cases()) || err != nil {
		t.Errorf("no name: %d cases, %v", len(all), err)
	}
	impls, err := SelectImpls([]string{"juggler", "presto", "juggler"})
	if err != nil || len(impls) != 2 || impls[0].Name != "presto" || impls[1].Name != "juggler" {
		t.Errorf("%v, %v", impls, err)
	}
	if _, err := SelectImpls([]string{"presto", "magic"}); err == nil ||
		err.Error() != `implementation "magic": unknown; known: presto, sequence, juggler, gvisor-gro, sorted-list` {
		t.Errorf("error %v", err)
	}
	if _, err := SelectCases([]string{"worst"}); err == nil || !strings.Contains(err.Error(), `case "worst"`) || !strings.Contains(err.Error(), "cells-4-skew") {
		t.Errorf("error %v", err)
	}
}

func TestPointerChase(t *testing.T) {
	l := PointerChase([]int{1, 2})
	if len(l) != 2 || l[0].MB != 1 || l[1].MB != 2 || l[0].Nanos <= 0 || l[1].Nanos <= 0 {
		t.Errorf("%v", l)
	}
}
