package topology

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestRate_layersAndLinks(t *testing.T) {
	top := mustParse(t, "fat-tree:k=4,core-rate=1000,fabric-rate=100,3.0-a0.2=250,a0.2-e0.1=40,h0.0.2-e0.0=5,host-rate=10,e0.0-a0.2=100")
	if want := "fat-tree:k=4,host-rate=10,fabric-rate=100,core-rate=1000,h0.0.2-e0.0=5,e0.1-a0.2=40,a0.2-c1.1=250"; top.String() != want {
		t.Errorf("it is %v, want %s", top, want)
	}
	own := map[string]float64{"a0.2-c1.1": 250, "e0.1-a0.2": 40, "h0.0.2-e0.0": 5}
	for l := range top.Links() {
		want := []float64{10, 100, 1000}[top.Node(l.A).Layer]
		if r, ok := own[top.LinkName(l.ID)]; ok {
			want = r
		}
		if got := top.Rate(l.ID); got != want {
			t.Errorf("%s has %v Mbit/s, want %v", top.LinkName(l.ID), got, want)
		}
	}
	if got := mustFatTree(t, 4).Rate(0); got != 0 {
		t.Errorf("unknown, but %v", got)
	}
	if a, b := top.Fingerprint(), mustFatTree(t, 4).Fingerprint(); a == b {
		t.Error("rates do not show in the fingerprint")
	}
}

func TestParse_rateErrors(t *testing.T) {
	for args, says := range map[string]string{
		"host-rate=":                              "host-rate has no value",
		"host-rate=-1":                            "host-rate=-1",
		"host-rate=Inf":                           "host-rate=Inf",
		"host-rate=NaN":                           "host-rate=NaN",
		"core-rate=1,core-rate=1":                 "core-rate given twice",
		"e0.0-a0.2=4":                             "fabric-rate is missing",
		"host-rate=4,e0.0-a0.2=4":                 "fabric-rate is missing",
		"fabric-rate=4,e0.0-a1.2=4":               "not wired",
		"fabric-rate=4,e0.0-a0.2=4,e0.0-a0.2=4":   "given twice",
		"fabric-rate=4,e0.0-a0.2=4,a0.2-e0.0=4":   "given twice",
		"fabric-rate=4,edge-rate=4":               `"edge-rate" is neither host-rate, fabric-rate, core-rate nor a link`,
		"fabric-rate=4,e0.0-a0.2=4,10.0.0.1-a0.2": "no value",
	} {
		if top, err := Parse("fat-tree:k=4," + args); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v; want an error saying %q", args, top, err, says)
		}
	}
}

func TestWeights_ofTheSlowestLink(t *testing.T) {
	for _, c := range []struct {
		spec     string
		src, dst NodeID
		down     string
		want     []int
	}{
		{"fat-tree:k=4", 0, 15, "", nil},
		{"fat-tree:k=4,fabric-rate=10,core-rate=40", 0, 15, "", nil},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20", 0, 15, "", nil}, // no faster at the far end
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20,e3.1-a3.2=20", 0, 15, "", []int{2, 2, 1, 1}},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20,e3.1-a3.2=20", 0, 15, "a1.2-3.0", []int{2, 2, 1, 1}},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20,e3.1-a3.2=20", 0, 15, "a0.2-3.0", []int{2, 1, 1}},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20,e3.1-a3.2=20", 0, 15, "e0.0-a0.2", nil},
		{"fat-tree:k=4,core-rate=10,a3.2-3.1=4", 0, 15, "", []int{5, 2, 5, 5}},
		{"fat-tree:k=4,core-rate=10,fabric-rate=3,a3.2-3.1=4", 0, 15, "", nil},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20,e0.1-a0.2=30", 0, 2, "", []int{2, 1}},
		{"fat-tree:k=4,fabric-rate=10,e0.0-a0.2=20", 0, 1, "", nil},
		{"fat-tree:k=4,host-rate=10,h0.0.2-e0.0=1", 0, 15, "", nil},
		{"leaf-spine:leaves=2,spines=3,hosts=1,fabric-rate=10,e0.0-a0.0=40,e0.1-a0.0=40", 0, 1, "", []int{4, 1, 1}},
		{"vl2:d0=2,d1=4,d2=4,hosts=1,fabric-rate=10,core-rate=10,a0.0-3.0=5", 0, 3, "", []int{1, 2, 2, 2}},
		{"vl2:d0=2,d1=4,d2=4,hosts=1,fabric-rate=10,core-rate=10,a0.1-3.2=5", 0, 3, "", []int{2, 2, 1, 2}},
		// Nothing small is in proportion: to the nearest 32nd, but at least one.
		{"leaf-spine:leaves=2,spines=3,hosts=1,fabric-rate=1000,e0.0-a0.0=1,e0.0-a0.1=333", 0, 1, "", []int{1, 11, 32}},
		{"leaf-spine:leaves=2,spines=2,hosts=1,fabric-rate=1000,e0.0-a0.0=999", 0, 1, "", nil},
	} {
		top := mustParse(t, c.spec)
		if c.down != "" {
			l, err := top.LinkByName(c.down)
			if err != nil {
				t.Fatal(err)
			}
			top = top.Without(l.ID)
		}
		set := top.Paths(c.src, c.dst)
		if !slices.Equal(set.Weights, c.want) {
			t.Errorf("%s without %s: weights %v of %v, want %v", c.spec, c.down, set.Weights, set.Live, c.want)
		}
		counts := map[int]int{}
		for _, n := range set.Weighted() {
			counts[n]++
		}
		for i, n := range set.Live {
			if want := append(slices.Clone(c.want), 1)[min(i, len(c.want))]; c.want != nil && counts[n] != want || c.want == nil && counts[n] != 1 {
				t.Errorf("%s: path %d is %d times in %v", c.spec, n, counts[n], set.Weighted())
			}
		}
		if !slices.IsSorted(set.Weighted()) || len(counts) != len(set.Live) {
			t.Errorf("%s: %v of %v", c.spec, set.Weighted(), set.Live)
		}
	}
}

// The weights stay within their bounds and as near to the rates as these
// allow, whatever the rates.
func TestWeigh_nearAndBounded(t *testing.T) {
	const seed = 23
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 400 {
		rates := make([]float64, 1+rng.IntN(MaxPaths))
		distinct := 1 + rng.IntN(4)
		values := make([]float64, distinct)
		for i := range values {
			values[i] = math.Ceil(rng.ExpFloat64()*100) / float64(1+rng.IntN(3))
		}
		for i := range rates {
			rates[i] = values[rng.IntN(distinct)]
		}
		w := weigh(rates)
		if w == nil {
			w = make([]int, len(rates))
			for i := range w {
				w[i] = 1
			}
		}
		total, d := 0, 0
		for _, x := range w {
			total += x
			d = gcd(d, x)
			if x < 1 || x > maxWeight {
				t.Fatalf("seed %d: weight %d", seed, x)
			}
		}
		if total > MaxWeighted || d != 1 {
			t.Fatalf("seed %d: %d weights add up to %d, all divisible by %d", seed, len(w), total, d)
		}
		fastest := slices.Max(rates)
		top := slices.Max(w)
		if len(rates) > MaxWeighted/maxWeight {
			continue // coarser
		}
		for i, r := range rates {
			// All within half a step of the scale; 1 is the least.
			if err := math.Abs(r/fastest - float64(w[i])/float64(top)); err > 1.0/maxWeight && w[i] > 1 {
				t.Fatalf("seed %d: rate %v of %v weighs %d of %d", seed, r, fastest, w[i], top)
			}
		}
	}
}

func TestSlowest_ofTheLinksBetweenSwitches(t *testing.T) {
	for spec, want := range map[string]float64{
		"fat-tree:k=4":                                                                  0,
		"fat-tree:k=4,host-rate=10":                                                     0,
		"fat-tree:k=4,host-rate=10,core-rate=1000":                                      1000,
		"fat-tree:k=4,fabric-rate=100,core-rate=1000":                                   100,
		"fat-tree:k=4,fabric-rate=100,core-rate=1000,e0.1-a0.2=40,a0.2-c1.1=250":        40,
		"fat-tree:k=4,host-rate=10,fabric-rate=100,h0.0.2-e0.0=5":                       100,
		"leaf-spine:leaves=2,spines=2,hosts=2,fabric-rate=250":                          250,
		"leaf-spine:leaves=2,spines=2,hosts=2,host-rate=1,fabric-rate=250,e0.1-a0.1=25": 25,
	} {
		top, err := Parse(spec)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := top.Slowest(); got != want {
			t.Errorf("%s: %v Mbit/s, want %v", spec, got, want)
		}
		if got := top.Without(LinkID(top.NumHosts())).Slowest(); got != want {
			t.Errorf("%s with a link down: %v Mbit/s, want %v", spec, got, want)
		}
	}
}
