package daemon

import (
	"net/netip"
	"testing"

	"weft/liveness"
	"weft/topology"
)

// Of many paths a part is left in which all path numbers and all destinations have their share.
func TestThinned(t *testing.T) {
	var paths []liveness.PathHealth
	for host := range 240 {
		for n := range 576 {
			paths = append(paths, liveness.PathHealth{Dst: netip.AddrFrom4([4]byte{10, 1, byte(host), 2}), Path: n})
		}
	}
	some := thinned(paths, maxEvidence)
	numbers, hosts := map[int]int{}, map[netip.Addr]int{}
	for _, p := range some {
		numbers[p.Path]++
		hosts[p.Dst]++
	}
	if len(some) < maxEvidence*9/10 || len(some) > maxEvidence*11/10 || len(numbers) != 576 || len(hosts) != 240 {
		t.Errorf("%d of %d paths: %d numbers, %d hosts", len(some), len(paths), len(numbers), len(hosts))
	}
	for n, count := range numbers {
		if mean := len(some) / 576; count < mean/2 || count > 2*mean {
			t.Errorf("path %d is left %d times, %d on average", n, count, mean)
		}
	}
	if few := paths[:9]; len(thinned(few, 9)) != 9 {
		t.Error("few paths are thinned")
	}
}

// A link that probes speak against and that loses packets is one entry; another that only one
// of the two says stands alone. What is kept in use says so.
func TestBlamed_merges(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self, _ := top.Lookup("h0.0.2")
	link := func(name string) topology.LinkID {
		l, err := top.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		return l.ID
	}
	var paths []liveness.PathHealth
	for rack := range top.Racks() {
		dst := top.FirstHost(rack)
		set := top.Paths(self.ID, dst)
		for n := range set.Count() {
			lately := liveness.Lately{Sent: 2000, Slots: 100}
			if up, down := set.Halves(n); down[len(down)-1] == link("a3.2-c1.1") || up[len(up)-1] == link("a3.2-c1.1") {
				lately.Lost, lately.Squares = 100, 100
			}
			paths = append(paths, liveness.PathHealth{Dst: top.Node(dst).Addr, Path: n, Via: set.Addr(n), Lately: lately})
		}
	}
	got := blamed(top, self.Addr, paths, []liveness.Suspect{
		{Link: link("a3.2-c1.1"), Path: -1, Why: "many probes not answered", Held: true},
		{Link: link("e0.0-a0.3"), Path: -1, Why: "probes not answered"},
		{Link: link("e0.0-a0.2"), Path: 2, Why: "as one destination says"},
	})
	if len(got) != 2 || got[0].Places[0] != "a3.2-c1.1" || got[0].Lost < 150 || !got[0].Held || got[0].Why == "" || len(got[0].Hurt) != 2 ||
		got[1].Places[0] != "e0.0-a0.3" || got[1].Loss != 0 || got[1].Held {
		t.Errorf("%+v", got)
	}
}
