package daemon

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"weft/internal/blame"
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
	}, maxEvidence)
	if len(got) != 3 || got[0].Places[0] != "a3.2-c1.1" || got[0].Lost < 150 || !got[0].Held || got[0].Why == "" || len(got[0].Hurt) != 2 ||
		got[1].Places[0] != "e0.0-a0.3" || got[1].Loss != 0 || got[1].Held {
		t.Errorf("%+v", got)
	}
}

// blamedAt is a leaf-spine fabric, and what is blamed for a state of the paths of its host
// h0.0.2: the boomerangs and the paths to h0.1.3, by a0.0 and a0.1.
func blamedAt(t *testing.T, change func(paths []liveness.PathHealth), suspects ...liveness.Suspect) ([]BlameStatus, []PathStatus) {
	t.Helper()
	top, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=2")
	if err != nil {
		t.Fatal(err)
	}
	self, dst := hostAddr(t, top, "h0.0.2"), hostAddr(t, top, "h0.1.3")
	link, err := top.LinkByName("e0.1-a0.1")
	if err != nil {
		t.Fatal(err)
	}
	set := top.Paths(0, 3)
	var paths []liveness.PathHealth
	for _, to := range []netip.Addr{self, dst} {
		for path := range 2 {
			paths = append(paths, liveness.PathHealth{Dst: to, Path: path, Via: set.Addr(path), State: liveness.Up})
		}
	}
	change(paths)
	for i := range suspects {
		suspects[i].Link, suspects[i].Dst = link.ID, dst
	}
	by := blamed(top, self, paths, suspects, maxEvidence)
	var list []PathStatus
	for _, p := range paths {
		list = append(list, PathStatus{To: top.HostName(p.Dst), State: string(p.State), Why: p.Why, Loss: p.Loss})
	}
	explain(top, self, by, paths, list)
	return by, list
}

func hostAddr(t *testing.T, top *topology.Topology, name string) netip.Addr {
	t.Helper()
	n, err := top.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n.Addr
}

// A link that probes accuse, or a host alone, is blamed and explains the paths over it that
// are out of use; what it does not explain stays unexplained.
func TestBlamed_suspects(t *testing.T) {
	dead := func(paths []liveness.PathHealth) {
		paths[3].State, paths[3].Why, paths[3].Loss = liveness.Quarantined, "probes not answered", 1
		paths[2].Loss = 0.1 // by the other switch
	}
	const link, why = "e0.1-a0.1", "probes not answered"
	of := func(b BlameStatus) []BlameStatus {
		b.Places, b.Kinds, b.Why = []string{link}, []string{"link"}, why
		return []BlameStatus{b}
	}
	for name, c := range map[string]struct {
		suspects []liveness.Suspect
		want     []BlameStatus
		explains bool
	}{
		"nobody":           {nil, nil, false},
		"all":              {[]liveness.Suspect{{Path: -1, Why: why}}, of(BlameStatus{Confidence: 1}), true},
		"all, held":        {[]liveness.Suspect{{Path: -1, Why: why, Held: true}}, of(BlameStatus{Confidence: 1, Held: true}), true},
		"one host":         {[]liveness.Suspect{{Path: 1, Why: why}}, of(BlameStatus{Confidence: 0.5, Says: []string{"h0.1.3"}}), true},
		"one host, twice":  {[]liveness.Suspect{{Path: 1, Why: why, Held: true}, {Path: 1, Why: why}}, of(BlameStatus{Confidence: 0.5, Says: []string{"h0.1.3"}}), true},
		"all and one host": {[]liveness.Suspect{{Path: -1, Why: why}, {Path: 1, Why: why}}, of(BlameStatus{Confidence: 1}), true},
	} {
		by, list := blamedAt(t, dead, c.suspects...)
		if !reflect.DeepEqual(by, c.want) {
			t.Errorf("%s: blamed %+v, want %+v", name, by, c.want)
		}
		for i, p := range list {
			want := ""
			if c.explains && i == 3 {
				want = link
			}
			if p.Blamed != want {
				t.Errorf("%s: path %d is explained by %q, want %q", name, i, p.Blamed, want)
			}
		}
	}
}

// Losses explain a path that loses as much, not one that loses far more, nor one that is slow.
func TestBlamed_explains(t *testing.T) {
	loss := BlameStatus{Loss: 0.3}
	for _, c := range []struct {
		by   BlameStatus
		path PathStatus
		want bool
	}{
		{loss, PathStatus{State: "quarantined", Why: "probes not answered", Loss: 0.5}, true},
		{loss, PathStatus{State: "quarantined", Why: "probes not answered", Loss: 1}, false},
		{loss, PathStatus{State: "up", Loss: 0.05}, true},
		{loss, PathStatus{State: "up"}, false},
		{loss, PathStatus{State: "slow", Why: "slow"}, false},
		{BlameStatus{Why: "slow"}, PathStatus{State: "slow", Why: "slow"}, true},
		{BlameStatus{Why: "w", Says: []string{"h1"}}, PathStatus{To: "h1", State: "quarantined", Why: "w"}, true},
		{BlameStatus{Why: "w", Says: []string{"h1"}}, PathStatus{To: "h2", State: "quarantined", Why: "w"}, false},
	} {
		if got := c.by.explains(&c.path); got != c.want {
			t.Errorf("%+v explains %+v: %v", c.by, c.path, got)
		}
	}
}

// What a host alone says of a link and what its packets tell is one entry with all places
// that explain it.
func TestBlamed_linkOrHost(t *testing.T) {
	by, _ := blamedAt(t, func(paths []liveness.PathHealth) {
		for i := range paths {
			paths[i].Lately = lately(1000, 0)
		}
		paths[3].Lately = lately(1000, 200)
	}, liveness.Suspect{Path: 1, Why: "many packets sent again", Since: time.Second})
	if len(by) != 1 || by[0].Why == "" || by[0].Loss == 0 || by[0].Places[0] != "e0.1-a0.1" || len(by[0].Says) != 1 || len(by[0].Kinds) != len(by[0].Places) || by[0].Kinds[0] != blame.Link.String() {
		t.Errorf("%+v", by)
	}
}

// lately is evidence of losses one by one.
func lately(sent, lost float32) liveness.Lately {
	return liveness.Lately{Sent: sent, Lost: lost, Squares: lost, Slots: max(lost, 1)}
}
