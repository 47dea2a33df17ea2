package conga

import (
	"testing"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// Two files from three servers: the second begins when the first is there.
func TestRequests_oneFileAfterTheOther(t *testing.T) {
	r := &requests{client: 9, servers: []topology.NodeID{4, 5, 6}, bytes: 1000, jobs: 2, way: time.Millisecond}
	var open []workload.Flow
	for {
		f, ok := r.Next()
		if !ok {
			break
		}
		open = append(open, f)
	}
	at := time.Duration(0)
	for file := range 2 {
		total := int64(0)
		for i, f := range open {
			if total += f.Bytes; f.Start != at+time.Millisecond || f.Dst != 9 || f.Src != r.servers[i] {
				t.Errorf("file %d: flow %+v, want one to host 9 at %v", file, f, at+time.Millisecond)
			}
		}
		if len(open) != 3 || total != 1000 {
			t.Fatalf("file %d: %d flows of %d bytes", file, len(open), total)
		}
		var next []workload.Flow
		for i, f := range open {
			at += 10 * time.Millisecond
			r.Done(f, at, func(f workload.Flow) { next = append(next, f) })
			if i < 2 && len(next) > 0 {
				t.Errorf("file %d: another one is asked for before it is there", file)
			}
		}
		open = next
	}
	if len(open) != 0 || r.files != 2 || r.ended != 60*time.Millisecond {
		t.Errorf("%d flows, %d files until %v; want none, 2 until 60ms", len(open), r.files, r.ended)
	}
	// 2,000 bytes in 60 ms are 0.267 Mbit/s.
	if got := r.percent(time.Second, 1); !near(got, 100*0.016/0.06) {
		t.Errorf("%v %% of 1 Mbit/s", got)
	}
	r.jobs = 3
	if got := r.percent(time.Second, 1); !near(got, 1.6) {
		t.Errorf("without the third file by the end: %v %% of 1 Mbit/s, want 1.6", got)
	}
}

func TestWriters_blocksKeepThePaceOfDisks(t *testing.T) {
	const pace = 10 * time.Millisecond
	racks := dataNodes(3)
	if len(racks[0]) != 2 || len(racks[1]) != 3 || racks[0][0] != 1 || racks[1][0] != 3 {
		t.Fatalf("%v", racks)
	}
	w := newWriters(racks, 500, pace, 20*time.Millisecond, 100*time.Millisecond, 1)
	rack := func(h topology.NodeID) int { return int(h) / 3 }
	open := make(map[uint32][]workload.Flow)
	last := time.Duration(-1)
	for {
		f, ok := w.Next()
		if !ok {
			break
		}
		if f.Start < last || f.Start >= pace {
			t.Errorf("the first blocks begin at %v after %v", f.Start, last)
		}
		last = f.Start
		open[f.Job] = append(open[f.Job], f)
	}
	// Blocks of rack 0 take 4 ms and wait for disks, those of rack 1 take 20.
	var counted [2]int
	var begins [2]int
	for len(open) > 0 {
		for job, copies := range open {
			delete(open, job)
			a, b := copies[0], copies[1]
			from := rack(a.Src)
			if len(copies) != 2 || rack(a.Dst) == from || b.Src != a.Dst || rack(b.Dst) != rack(a.Dst) || b.Dst == b.Src || !a.Alone || a.Bytes != 500 {
				t.Fatalf("copies %+v", copies)
			}
			begins[from]++
			at := a.Start + []time.Duration{4 * time.Millisecond, 20 * time.Millisecond}[from]
			if at >= 20*time.Millisecond {
				counted[from]++
			}
			want := max(at, a.Start+pace)
			w.Done(a, a.Start+time.Millisecond, func(workload.Flow) { t.Error("a block begins before the last one is written") })
			w.Done(b, at, func(f workload.Flow) {
				if f.Start != want {
					t.Errorf("the next block begins at %v, want %v", f.Start, want)
				}
				open[f.Job] = append(open[f.Job], f)
			})
		}
	}
	if w.written != counted || begins[0] != 2*10 || begins[1] != 3*5 {
		t.Errorf("%v blocks are written, %v begun; want %v, and 10 and 5 of each node", w.written, begins, counted)
	}
	// Of 5,000 bytes rack 1's nodes write 3,000.
	if want := 3000 / (float64(counted[1]) * 500 / 0.08); !near(w.job(5000), want) {
		t.Errorf("the job takes %v s, want %v", w.job(5000), want)
	}
}

// CONGA-Flow is CONGA with a long gap, and every scheme has a label of its own.
func TestSchemes(t *testing.T) {
	fabric, err := testbed(2)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for name := range schemes {
		c := run{fabric: fabric, connections: persistent, policy: name}.bare(1)
		if label := labelOf(name); label == "" || seen[label] {
			t.Errorf("%s is called %q, as another one", name, label)
		}
		seen[labelOf(name)] = true
		if gap := c.Options.FlowletGap; (name == congaFlow) != (gap == flowGap) || name == congaFlow && c.Policy != conga {
			t.Errorf("%s: policy %s with a gap of %v", name, c.Policy, gap)
		}
		if restores := name == host || name == presto || name == drb; restores != (c.Resequencer != nil) || c.Connections != 3 || c.Parallel != 2 {
			t.Errorf("%s: resequencer %v, %d connections, %d parallel links", name, c.Resequencer, c.Connections, c.Parallel)
		}
	}
}

// Each value of a decision changes what it says and nothing that others share.
func TestDecisions(t *testing.T) {
	fabric, err := testbed(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Experiments() {
		for _, d := range e.Decisions {
			for _, v := range d.Values {
				if v.Tune == nil {
					if len(v.Replace) != 1 {
						t.Errorf("%s, %s: %s replaces nothing", e.Name, d.Parameter, v.Name)
					}
					continue
				}
				c := run{fabric: fabric, connections: persistent, policy: conga}.bare(1)
				before := c
				queue := c.Queues[0].Bytes
				v.Tune(&c)
				if before.Queues[0].Bytes != queue {
					t.Errorf("%s, %s: %s changes what others share", e.Name, d.Parameter, v.Name)
				}
				if c.Queues[0].Bytes == queue && c.Connections == before.Connections && c.TCP == before.TCP {
					t.Errorf("%s, %s: %s changes nothing", e.Name, d.Parameter, v.Name)
				}
			}
		}
	}
}
