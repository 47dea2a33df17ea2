package thesis

import (
	"slices"
	"testing"

	"weft/hedera"
	"weft/topology"
)

// Receivers of neighbours are as the rules say, in mappings that have the pattern's property.
func TestReceivers(t *testing.T) {
	top, f, err := fabricOf(clickTree)
	if err != nil {
		t.Fatal(err)
	}
	made := func(p pattern, seed uint64) []topology.NodeID {
		to, err := p.make(top, seed)
		if err != nil {
			t.Fatal(err)
		}
		if got := arriving(f, byPaths(f, to, f.TwoLevel)); got != .5 {
			t.Errorf("%s: %v arrives of %v, want half", p.name, got, to)
		}
		if sorted := slices.Sorted(slices.Values(to)); len(slices.Compact(sorted)) != len(to) {
			t.Errorf("%s: %v is not one to one", p.name, to)
		}
		return to
	}
	for seed := range uint64(20) {
		in, out := made(incomingWhere(near), seed), made(outgoingWhere(near), seed)
		farIn, farOut := made(incomingWhere(far), seed), made(outgoingWhere(far), seed)
		for h := 0; h < len(in); h += 2 {
			if f.Rack(in[h]) != f.Rack(in[h+1]) {
				t.Errorf("near, incoming: rack-mates send to %d and %d", in[h], in[h+1])
			}
			if f.Pod(out[h]) != f.Pod(out[h+1]) || f.Pod(out[h]) != f.Pod(out[h&^3]) {
				t.Errorf("near, outgoing: a pod's hosts send to %v", out[h&^3:h+2])
			}
			if f.Rack(farIn[h]) == f.Rack(farIn[h+1]) {
				t.Errorf("far, incoming: rack-mates send to %d and %d", farIn[h], farIn[h+1])
			}
			if f.Pod(farOut[h]) == f.Pod(farOut[h+1]) {
				t.Errorf("far, outgoing: rack-mates send to %d and %d", farOut[h], farOut[h+1])
			}
		}
	}
}

// listener is a rule that keeps what it was told of.
type listener struct{ of [][]*hedera.Flow }

func (r *listener) Round(flows []*hedera.Flow) { r.of = append(r.of, slices.Clone(flows)) }
func (r *listener) Keep(*hedera.Flow)          {}
func (r *listener) End(*hedera.Flow)           {}

// A flow is placed with the round after the one that finds it, and one that takes its place
// when it has ended waits as well.
func TestNextTick(t *testing.T) {
	var told listener
	rule := nextTick(&told)
	var a, b hedera.Flow
	rule.Round([]*hedera.Flow{&a})
	rule.Round([]*hedera.Flow{&a, &b})
	rule.End(&a)
	rule.Round([]*hedera.Flow{&a, &b})
	want := [][]*hedera.Flow{nil, {&a}, {&b}}
	if !slices.EqualFunc(told.of, want, slices.Equal) {
		t.Errorf("%v, want %v", told.of, want)
	}
}
