package daemon

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"weft/liveness"
	"weft/topology"
)

// seenBy is what a host of a fabric knows of its paths to a host of each other rack, if links
// lose a part of the packets.
func seenBy(t *testing.T, top *topology.Topology, to []string, loss map[string]float32) []liveness.PathHealth {
	t.Helper()
	var paths []liveness.PathHealth
	for _, text := range to {
		dst := netip.MustParseAddr(text)
		_, rack, ok := top.HostAt(dst)
		if !ok {
			t.Fatalf("%v is in no rack", dst)
		}
		set := top.PathsOrAll(0, rack)
		for n := range set.Count() {
			p := liveness.PathHealth{Dst: dst, Path: n, Via: set.Addr(n), State: liveness.Up, Lately: lately(10_000, 0)}
			up, down := set.Halves(n)
			for _, l := range slices.Concat(up, down) {
				if lost := 10_000 * loss[top.LinkName(l)]; l >= 0 && lost > 0 {
					p.Lately = lately(10_000, lost)
				}
			}
			paths = append(paths, p)
		}
	}
	return paths
}

// What a link does to either family is found, and whose packets it hurts is said. Numbers of
// links and nodes differ between the families' views: in that of IPv6 a link less is there.
func TestBlamedBoth(t *testing.T) {
	four, six := leafSpine(t, 3, 4), leafSpineTo(t, "2001:db8::2", 3, 4, "e2-s0")
	self, self6 := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("2001:db8::2")
	to, to6 := []string{"10.0.1.9", "10.0.2.9"}, []string{"2001:db8:0:1::9", "2001:db8:0:2::9"}
	for _, c := range []struct {
		loss, loss6 map[string]float32
		want        []string
	}{
		{nil, nil, nil},
		{map[string]float32{"e1-s1": 0.02}, nil, []string{"e1-s1 ipv4 200"}},
		{nil, map[string]float32{"e1-s1": 0.02}, []string{"e1-s1 ipv6 200"}},
		{nil, map[string]float32{"e1-s3": 1}, []string{"e1-s3 ipv6 10000"}},
		{map[string]float32{"e1-s1": 0.02}, map[string]float32{"e1-s1": 0.04}, []string{"e1-s1  600"}},
		{map[string]float32{"e1-s1": 0.02}, map[string]float32{"e2-s2": 0.04}, []string{"e2-s2 ipv6 400", "e1-s1 ipv4 200"}},
	} {
		paths, paths6 := seenBy(t, four, to, c.loss), seenBy(t, six, to6, c.loss6)
		used, other := newFakeProber(self, paths...), newFakeProber(self6, paths6...)
		close(used.let)
		close(other.let)
		b := basis{probing: probing{used, other}, topology: four, topology6: six}
		v := b.view()
		var got []string
		for _, one := range v.blamed {
			got = append(got, fmt.Sprint(one.Places[0], " ", one.Family, " ", one.Lost))
			if len(one.Places) != 1 || one.Paths == 0 || one.Confidence < 0.99 {
				t.Errorf("%v, %v: %+v", c.loss, c.loss6, one)
			}
			if s, s6 := c.loss[one.Places[0]], c.loss6[one.Places[0]]; one.Loss < float64(max(min(s, s6), max(s, s6)/2))*0.99 || one.Loss > float64(max(s, s6))*1.01 {
				t.Errorf("%v, %v: loss is %v", c.loss, c.loss6, one.Loss)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, %v: blamed are %q, want %q", c.loss, c.loss6, got, c.want)
		}
		if len(v.paths) != len(paths)+len(paths6) {
			t.Errorf("%d paths, want %d", len(v.paths), len(paths)+len(paths6))
		}
		// Without IPv6 it says nothing of families.
		alone := basis{probing: probing{used: used}, topology: four}
		for _, one := range alone.view().blamed {
			if one.Family != "" {
				t.Errorf("one family: %+v", one)
			}
		}
	}
}

// What two families say of one place is one entry: evidence of either stays, and what only one
// of two hosts says is not what all say.
func TestBlamedBoth_oneEntry(t *testing.T) {
	link := func(b BlameStatus) BlameStatus {
		b.Places, b.Kinds = []string{"e1-s1"}, []string{"link"}
		return b
	}
	hurt := make([]HurtStatus, 6)
	for i := range hurt {
		hurt[i] = HurtStatus{fmt.Sprint("h", i), 20 - i}
	}
	for _, c := range []struct{ four, six, want BlameStatus }{
		{link(BlameStatus{Why: "w", Held: true, Confidence: 1}), link(BlameStatus{Loss: 0.1, Lost: 10, Paths: 2, Confidence: 0.8}),
			link(BlameStatus{Why: "w", Held: true, Loss: 0.1, Lost: 10, Paths: 2, Confidence: 1})},
		{link(BlameStatus{Why: "w", Says: []string{"a"}}), link(BlameStatus{Why: "x", Says: []string{"b"}}), link(BlameStatus{Why: "w", Says: []string{"a", "b"}})},
		{link(BlameStatus{Why: "w", Held: true}), link(BlameStatus{Why: "x", Says: []string{"b"}}), link(BlameStatus{Why: "w"})},
		{BlameStatus{Places: []string{"e1-s1", "s1"}, Kinds: []string{"link", "switch"}, Loss: 0.1, Lost: 10, Paths: 1, Hurt: hurt},
			BlameStatus{Places: []string{"s1", "e2-s1"}, Kinds: []string{"switch", "link"}, Loss: 0.3, Lost: 30, Paths: 2, Hurt: hurt},
			BlameStatus{Places: []string{"s1"}, Kinds: []string{"switch"}, Loss: 0.2, Lost: 40, Paths: 3,
				Hurt: []HurtStatus{hurt[0], hurt[0], hurt[1], hurt[1], hurt[2], hurt[2], hurt[3], hurt[3]}}},
	} {
		got := blamedBoth([]BlameStatus{c.four}, []BlameStatus{c.six})
		if len(got) == 1 && len(got[0].Hurt) == 0 {
			got[0].Hurt = nil
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%+v and %+v: %+v, want %+v", c.four, c.six, got, c.want)
		}
	}
}
