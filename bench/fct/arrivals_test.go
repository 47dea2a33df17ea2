package fct

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

func parse(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// long are arrivals for so long that means are close to what they should be.
func long(t testing.TB, spec, traffic string) *arrivals {
	t.Helper()
	cdf, err := workload.LoadCDF("fb_hadoop_hpcc")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := parseTraffic(traffic)
	if err != nil {
		t.Fatal(err)
	}
	return &arrivals{topology: parse(t, spec), rateMbit: 10, sizes: cdf.Truncate(100_000), traffic: kind, jobBytes: 400_000, duration: 60 * time.Second}
}

// The bytes that begin per second are the load's, also where links have rates of their own
// and where the fabric is oversubscribed.
func TestArrivals_offerTheLoad(t *testing.T) {
	for spec, mbit := range map[string]float64{
		"fat-tree:k=4":                                      16 * 10,
		"fat-tree:k=4,host-rate=5":                          16 * 5,
		"leaf-spine:leaves=4,spines=2,hosts=4":              4 * 2 * 10,
		"leaf-spine:leaves=4,spines=4,hosts=4,host-rate=20": 4 * 4 * 10,
	} {
		for _, traffic := range []string{"random", "permutation", "stride(4)", "staggered(0.2,0.3)", "incast(5)", "hdfs"} {
			a := long(t, spec, traffic)
			for _, load := range []float64{0.2, 0.8} {
				p, err := a.plan(load, 3)
				if err != nil {
					t.Fatal(err)
				}
				flows := p.flows
				tolerance := 0.05
				if p.jobs > 0 { // some hundred, so a Poisson process varies by some percent
					tolerance = 0.15
				}
				bytes := 0.0
				for _, f := range flows {
					bytes += float64(f.Bytes)
				}
				got, want := bytes*8/1e6/flows[len(flows)-1].Start.Seconds(), load*mbit
				if math.Abs(got/want-1) > tolerance {
					t.Errorf("%s, %s, load %g: %.2f Mbit/s, want %.2f", spec, traffic, load, got, want)
				}
			}
		}
	}
}

// A link that serves one flow after the other is an M/G/1 queue: the mean wait is that of
// Pollaczek and Khinchine, so arrivals are a Poisson process, and sizes are independent of it.
func TestArrivals_areThoseOfAnMG1Queue(t *testing.T) {
	a := long(t, "leaf-spine:leaves=2,spines=1,hosts=1", "permutation")
	a.duration = 100 * time.Second
	for _, load := range []float64{0.2, 0.5, 0.8} {
		var wait, served, squares, n float64
		for seed := range uint64(8) {
			flows, err := a.flows(load, seed)
			if err != nil {
				t.Fatal(err)
			}
			free := 0.0 // when the link is, in seconds
			for _, f := range flows {
				if f.Src != 0 {
					continue
				}
				start, takes := f.Start.Seconds(), float64(f.Bytes)*8/10e6
				free = max(free, start)
				wait += free - start
				free += takes
				served, squares, n = served+takes, squares+takes*takes, n+1
			}
		}
		// The two hosts have a rack each, so the link of each has the load itself.
		rate := load * 10e6 / 8 / a.sizes.Mean()
		want := rate * squares / n / (2 * (1 - load))
		if got := wait / n; math.Abs(got/want-1) > 0.12 {
			t.Errorf("load %g: flows wait for %.2f ms in the mean, want %.2f", load, got*1e3, want*1e3)
		}
	}
}

func TestArrivals_goWhereTheTrafficSays(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "leaf-spine:leaves=4,spines=4,hosts=4"} {
		top := parse(t, spec)
		random, _ := long(t, spec, "random").flows(0.2, 7)
		seen := make(map[[2]topology.NodeID]int)
		for _, f := range random {
			if top.EdgeOf(f.Src) == top.EdgeOf(f.Dst) {
				t.Fatalf("%s: %d sends within its rack", spec, f.Src)
			}
			seen[[2]topology.NodeID{f.Src, f.Dst}]++
		}
		hosts := top.NumHosts()
		pairs := hosts * (hosts - len(workload.RackOf(top, 0)))
		if even := len(random) / pairs; len(seen) != pairs || slices.Min(values(seen)) < even/2 || slices.Max(values(seen)) > 2*even {
			t.Errorf("%s: %d pairs of %d, %v", spec, len(seen), pairs, seen)
		}
		permutation, _ := long(t, spec, "permutation").flows(0.2, 7)
		to, from := make(map[topology.NodeID]topology.NodeID), make(map[topology.NodeID]topology.NodeID)
		for _, f := range permutation {
			if d, ok := to[f.Src]; ok && d != f.Dst {
				t.Fatalf("%s: %d sends to %d and %d", spec, f.Src, d, f.Dst)
			}
			if s, ok := from[f.Dst]; ok && s != f.Src {
				t.Fatalf("%s: %d receives from %d and %d", spec, f.Dst, s, f.Src)
			}
			to[f.Src], from[f.Dst] = f.Dst, f.Src
		}
		if len(to) != hosts {
			t.Errorf("%s: %d of %d hosts send", spec, len(to), hosts)
		}
	}
}

func values[K comparable](m map[K]int) (all []int) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

func TestArrivals_followTheSeed(t *testing.T) {
	a := long(t, "fat-tree:k=4", "random")
	one, _ := a.flows(0.5, 1)
	again, _ := a.flows(0.5, 1)
	two, _ := a.flows(0.5, 2)
	if !slices.Equal(one, again) || slices.Equal(one, two) {
		t.Error("flows do not follow the seed")
	}
	if !slices.IsSortedFunc(one, func(a, b workload.Flow) int { return int(a.Start - b.Start) }) || one[len(one)-1].Start >= a.duration {
		t.Error("flows do not begin in order, or too late")
	}
}

func TestOptions_errorsNameTheOption(t *testing.T) {
	good := Options{Topology: parse(t, "fat-tree:k=4"), RateMbit: 10, Rows: Rows(), Workload: "websearch_dctcp", Scale: 0.02,
		Traffic: "random", Loads: []float64{0.2}, Seeds: 1, Duration: time.Second, Drain: time.Second}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for word, spoil := range map[string]func(*Options){
		"topology":                   func(o *Options) { o.Topology = nil },
		"rows":                       func(o *Options) { o.Rows = nil },
		"scale 0":                    func(o *Options) { o.Scale = 0 },
		"scale NaN":                  func(o *Options) { o.Scale = math.NaN() },
		"loads: none":                func(o *Options) { o.Loads = nil },
		"loads: 1.1":                 func(o *Options) { o.Loads = []float64{0.2, 1.1} },
		"seeds 0":                    func(o *Options) { o.Seeds = 0 },
		"duration -1s":               func(o *Options) { o.Duration = -time.Second },
		"drain 0s":                   func(o *Options) { o.Drain = 0 },
		"stride(BY)":                 func(o *Options) { o.Traffic = "all" },
		"datamining_vl2":             func(o *Options) { o.Workload = "none" },
		"another rack":               func(o *Options) { o.Topology = parse(t, "leaf-spine:leaves=1,spines=2,hosts=4") },
		"raise the scale":            func(o *Options) { o.Scale, o.Duration = 1e-6, time.Hour },
		"less than one flow in 10ms": func(o *Options) { o.Scale, o.Duration = 10, 10*time.Millisecond },
	} {
		o := good
		spoil(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one that says %q", err, word)
		}
	}
}
