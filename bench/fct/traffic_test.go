package fct

import (
	"slices"
	"strings"
	"testing"

	"weft/bench/sim/workload"
	"weft/topology"
)

func TestParseTraffic(t *testing.T) {
	for s, want := range map[string]string{"random": "random", "stride(4)": "stride(4)", "staggered(0.5,0.3)": "staggered(0.5, 0.3)",
		"staggered( 1, 0 )": "staggered(1, 0)", "incast(8)": "incast(8)", "shuffle": "shuffle", "hdfs": "hdfs", "permutation": "permutation"} {
		got, err := parseTraffic(s)
		if err != nil || got.name != want {
			t.Errorf("%q: %q, %v", s, got.name, err)
		}
		if again, err := parseTraffic(got.name); err != nil || again.name != got.name {
			t.Errorf("%q is not read back: %v", got.name, err)
		}
	}
	for s, says := range map[string]string{"": "unknown", "all": "stride(BY)", "stride": "unknown", "stride(": "unknown", "stride()": "stride(BY)", "stride(x)": `"x"`, "stride(-1)": `"-1"`,
		"stride(1.5)": "whole", "stride(1,2)": "2 parameters", "random(1)": "unknown", "incast(NaN)": "NaN", "staggered(0.5)": "staggered(RACK,POD)"} {
		if _, err := parseTraffic(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", s, err, says)
		}
	}
}

func planOf(t *testing.T, spec, traffic string) (*arrivals, plan) {
	t.Helper()
	a := long(t, spec, traffic)
	p, err := a.plan(0.4, 5)
	if err != nil {
		t.Fatal(err)
	}
	return a, p
}

// Each host sends to each other one once, and one after the other.
func TestShuffle_isEachPairInTurn(t *testing.T) {
	a, p := planOf(t, "fat-tree:k=4", "shuffle")
	n := a.topology.NumHosts()
	pairs := make(map[[2]topology.NodeID]bool)
	firsts := 0
	for i, f := range p.flows {
		pairs[[2]topology.NodeID{f.Src, f.Dst}] = true
		if f.Src == f.Dst || f.Bytes != a.jobBytes || f.Job != uint32(f.Src) || f.Start != 0 {
			t.Errorf("flow %+v", f)
		}
		if after := p.follows(i); after < 0 {
			firsts++
		} else if after >= i || p.flows[after].Src != f.Src {
			t.Errorf("flow %d follows %d", i, after)
		}
	}
	if len(pairs) != n*(n-1) || len(p.flows) != len(pairs) || firsts != n || p.jobs != n {
		t.Errorf("%d flows of %d pairs, %d begin at once, %d jobs", len(p.flows), len(pairs), firsts, p.jobs)
	}
}

// jobsOf returns the flows by job, and checks that they begin together and in order.
func jobsOf(t *testing.T, p plan) map[uint32][]workload.Flow {
	t.Helper()
	if !slices.IsSortedFunc(p.flows, func(a, b workload.Flow) int { return int(a.Start - b.Start) }) {
		t.Error("flows are not in order")
	}
	jobs := make(map[uint32][]workload.Flow)
	for _, f := range p.flows {
		jobs[f.Job] = append(jobs[f.Job], f)
		if f.Start != jobs[f.Job][0].Start {
			t.Errorf("job %d begins at %v and at %v", f.Job, jobs[f.Job][0].Start, f.Start)
		}
	}
	if len(jobs) != p.jobs || p.jobs < 10 {
		t.Fatalf("%d jobs, %d are said", len(jobs), p.jobs)
	}
	return jobs
}

func TestIncast_hasItsFanIn(t *testing.T) {
	a, p := planOf(t, "leaf-spine:leaves=4,spines=4,hosts=4", "incast(7)")
	for n, flows := range jobsOf(t, p) {
		servers, sum := make(map[topology.NodeID]bool), int64(0)
		for _, f := range flows {
			servers[f.Src] = true
			sum += f.Bytes
			if f.Dst != flows[0].Dst || f.Src == f.Dst {
				t.Errorf("job %d: %+v", n, f)
			}
		}
		if len(servers) != 7 || len(flows) != 7 || sum != a.jobBytes {
			t.Errorf("job %d: %d flows of %d servers, %d bytes", n, len(flows), len(servers), sum)
		}
	}
}

func TestPipelines_areOfThreeHosts(t *testing.T) {
	a, p := planOf(t, "leaf-spine:leaves=4,spines=4,hosts=4", "hdfs")
	for n, flows := range jobsOf(t, p) {
		if len(flows) != 2 {
			t.Fatalf("job %d: %d flows", n, len(flows))
		}
		first, second := flows[0], flows[1]
		if a.topology.EdgeOf(first.Src) == a.topology.EdgeOf(first.Dst) || second.Src != first.Dst || second.Dst == first.Src || second.Dst == second.Src ||
			first.Bytes != a.jobBytes || second.Bytes != a.jobBytes {
			t.Errorf("job %d: %+v, %+v", n, first, second)
		}
	}
}

func TestStrideAndStaggered_goWhereTheySay(t *testing.T) {
	a, p := planOf(t, "fat-tree:k=4", "stride(3)")
	for _, f := range p.flows {
		if int(f.Dst) != (int(f.Src)+3)%a.topology.NumHosts() {
			t.Errorf("%+v", f)
		}
	}
	a, p = planOf(t, "fat-tree:k=4", "staggered(1,0)")
	for _, f := range p.flows {
		if a.topology.EdgeOf(f.Src) != a.topology.EdgeOf(f.Dst) {
			t.Errorf("%+v leaves its rack", f)
		}
	}
	o := Options{Topology: a.topology, RateMbit: 10, Rows: Rows(), Workload: "websearch_dctcp", Scale: 0.02, Loads: []float64{0.2}, Seeds: 1, Duration: 2e9, Drain: 1e9}
	for traffic, says := range map[string]string{"stride(16)": "stride of 16", "staggered(0.8,0.8)": "probabilities", "incast(16)": "Servers is 16", "incast(0)": "Servers is 0"} {
		o.Traffic = traffic
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one that says %q", traffic, err, says)
		}
	}
	if o.Traffic, o.JobBytes = "random", 5; o.Check() == nil {
		t.Error("random traffic takes the size of a job")
	}
	o.Traffic, o.JobBytes, o.Loads = "shuffle", 0, []float64{0.2, 0.5}
	if err := o.Check(); err != nil || !slices.Equal(o.Loads, []float64{1}) {
		t.Errorf("a shuffle has loads %v, %v", o.Loads, err)
	}
}
