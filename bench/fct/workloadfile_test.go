package fct

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is written is read as the same flows, to the microsecond.
func TestFile_readsWhatIsWritten(t *testing.T) {
	for _, traffic := range []string{"random", "incast(3)", "shuffle", "hdfs"} {
		o := simOptions(t, "kernel-ecmp")
		o.Traffic, o.Scale, o.Duration = traffic, 0.002, 3*time.Second
		if err := o.Check(); err != nil {
			t.Fatal(traffic, err)
		}
		want, err := o.plan(o.Loads[0], o.Seed)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := o.WriteFile(&text); err != nil {
			t.Fatal(err)
		}
		f, err := ParseFile(text.Bytes())
		if err != nil {
			t.Fatal(traffic, err)
		}
		read := Options{Rows: o.Rows, Seeds: 1, Drain: time.Second}
		if err := read.Use(f); err != nil {
			t.Fatal(err)
		}
		if err := read.Check(); err != nil {
			t.Fatal(err)
		}
		got, err := read.plan(0, 99)
		if err != nil || len(got.flows) != len(want.flows) || got.jobs != want.jobs {
			t.Fatalf("%s: %d flows, %d jobs, %v", traffic, len(got.flows), got.jobs, err)
		}
		for i := range want.flows {
			want.flows[i].Start = want.flows[i].Start.Truncate(time.Microsecond)
			if want.follows(i) != got.follows(i) {
				t.Fatalf("%s: flow %d follows %d, want %d", traffic, i, got.follows(i), want.follows(i))
			}
		}
		if !slices.Equal(got.flows, want.flows) {
			t.Errorf("%s: other flows", traffic)
		}
		if read.Topology.String() != o.Topology.String() || read.RateMbit != 10 || read.WorkloadName() != o.WorkloadName() || read.Traffic != o.Traffic || read.Scale != o.Scale || read.Duration != o.Duration {
			t.Errorf("%+v", read)
		}
	}
}

const goodFile = `{"topology":"leaf-spine:leaves=2,spines=2,hosts=2","rate_mbit":10,"workload":"w","traffic":"t","load":0.5,"scale":1,"seed":3,"duration_us":1000,"flows":[
{"start_us":1,"src":"h0.0.2","dst":"h0.1.2","bytes":5,"job":0},
{"start_us":2,"src":"h0.0.3","dst":"h0.1.3","bytes":6,"job":1,"after":0}]}`

func TestParseFile_errorsNameTheField(t *testing.T) {
	if _, err := ParseFile([]byte(goodFile)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, says string }{
		{`"bytes":6`, `"bytes":-6`, "flows[1].bytes: -6"},
		{`"bytes":6`, `"bytes":0`, "flows[1].bytes: 0"},
		{`"bytes":6`, `"bytes":1.5`, "bytes"},
		{`"bytes":6`, `"bytes":99999999999999`, "flows[1].bytes"},
		{`"src":"h0.0.3"`, `"src":"h9.9.9"`, `flows[1].src: "h9.9.9"`},
		{`"dst":"h0.1.3"`, `"dst":"e0.0"`, `flows[1].dst: "e0.0"`},
		{`"dst":"h0.1.3"`, `"dst":"h0.0.3"`, "flows[1].dst: h0.0.3 is the sender"},
		{`"start_us":2`, `"start_us":0`, "flows[1].start_us: 0: is before"},
		{`"start_us":1,`, `"start_us":-1,`, "flows[0].start_us: -1"},
		{`"start_us":2`, `"start_us":1001`, "flows[1].start_us: 1001"},
		{`"after":0`, `"after":1`, "flows[1].after: 1"},
		{`"after":0`, `"after":-1`, "flows[1].after: -1"},
		{`"job":1`, `"job":7`, "flows[1].job: 7"},
		{`,"job":1`, ``, "flows[1].job"},
		{`"load":0.5`, `"load":1.5`, "load: 1.5"},
		{`"load":0.5`, `"load":0`, "load: 0"},
		{`"load":0.5`, `"load":-1`, "load: -1"},
		{`"scale":1`, `"scale":-1`, "scale: -1"},
		{`"rate_mbit":10`, `"rate_mbit":0`, "rate_mbit: 0"},
		{`"duration_us":1000`, `"duration_us":-5`, "duration_us: -5"},
		{`"topology":"leaf-spine:leaves=2,spines=2,hosts=2"`, `"topology":"ring"`, "topology"},
		{`hosts=2"`, `hosts=200,"`, "topology"},
		{`leaves=2,spines=2,hosts=2`, `leaves=200,spines=100,hosts=50`, "topology: "},
		{`"seed":3`, `"sead":3`, "sead"},
		{`"seed":3`, `"seed":-3`, "seed"},
		{`}]}`, `}]} {}`, "more after"},
		{`}]}`, `}]`, "ends too early"},
		{`"bytes":6`, `"bytes":"six"`, "flows.bytes: a string"},
		{`"seed":3`, `"seed" 3`, "no JSON from byte"},
	} {
		if !strings.Contains(goodFile, c.old) {
			t.Fatal(c.old)
		}
		if _, err := ParseFile([]byte(strings.Replace(goodFile, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", c.new, err, c.says)
		}
	}
	if _, err := ParseFile([]byte(`{"topology":"leaf-spine:leaves=2,spines=2,hosts=2","rate_mbit":10,"load":1,"scale":1,"duration_us":1,"flows":[]}`)); err == nil || !strings.Contains(err.Error(), "flows: 0") {
		t.Errorf("error %v", err)
	}
	o := simOptions(t, "kernel-ecmp")
	o.Loads = []float64{0.1, 0.2}
	if err := o.WriteFile(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "loads") {
		t.Errorf("error %v", err)
	}
}

// openFile has flows that follow no other: 5,000 bytes in 2 ms of 40 Mbit/s.
const openFile = `{"topology":"leaf-spine:leaves=2,spines=2,hosts=2","rate_mbit":10,"workload":"w","traffic":"t","load":0.5,"scale":1,"seed":3,"duration_us":2000,"flows":[
{"start_us":1,"src":"h0.0.2","dst":"h0.1.2","bytes":2000},{"start_us":2,"src":"h0.0.3","dst":"h0.1.3","bytes":3000}]}`

// A file's load is what its flows offer of what links carry, not what somebody wrote.
func TestParseFile_loadIsThatOfTheFlows(t *testing.T) {
	for _, c := range []struct{ old, new, says string }{ // says "": accepted
		{"", "", ""},
		{`"load":0.5`, `"load":0.54`, ""},
		{`"load":0.5`, `"load":0.46`, ""},
		{`"load":0.5`, `"load":0.6`, "load: 0.6: the flows offer 0.5 of the 40 Mbit/s"},
		{`"load":0.5`, `"load":0.44`, "load: 0.44: the flows offer 0.5 of the 40 Mbit/s"},
		{`"duration_us":2000`, `"duration_us":900`, "more than all: make duration_us 1000 or more"},
		{`"rate_mbit":10`, `"rate_mbit":1`, "load: the flows offer 5 of the 4 Mbit/s"},
		{`hosts=2"`, `hosts=2,host-rate=5"`, "load: 0.5: the flows offer 1 of the 20 Mbit/s"},
		{`"bytes":3000`, `"bytes":30000`, "load: the flows offer 3.2"},
		// In chains flows wait for each other: they offer what the fabric carries.
		{`"bytes":3000`, `"bytes":300000,"after":0`, ""},
	} {
		_, err := ParseFile([]byte(strings.Replace(openFile, c.old, c.new, 1)))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q", c.new, err, c.says)
		}
	}
	// What others follow does not count, what stands beside chains does.
	beside := strings.Replace(openFile, `]}`, `,{"start_us":2,"src":"h0.0.3","dst":"h0.1.3","bytes":300000,"after":1}]}`, 1)
	if _, err := ParseFile([]byte(beside)); err != nil {
		t.Error(err)
	}
	beside = strings.Replace(beside, `"bytes":2000`, `"bytes":20000`, 1)
	if _, err := ParseFile([]byte(beside)); err == nil || !strings.Contains(err.Error(), "load: the flows offer 2 ") {
		t.Errorf("%v", err)
	}
}

// A file that is written has the load of its flows, and one that links cannot carry is not written.
func TestWriteFile_loadIsThatOfTheFlows(t *testing.T) {
	o := simOptions(t, "kernel-ecmp")
	o.Duration, o.Loads = 300*time.Millisecond, []float64{0.8}
	written, refused := 0, 0
	for o.Seed = range uint64(40) { // so few flows have loads far from 0.8
		var text bytes.Buffer
		if err := o.WriteFile(&text); err != nil {
			if refused++; !strings.Contains(err.Error(), "loads: 0.8: the flows of seed") {
				t.Fatal(err)
			}
			continue
		}
		if _, err := ParseFile(text.Bytes()); err != nil {
			t.Fatalf("seed %d: %v", o.Seed, err)
		}
		written++
	}
	if written < 10 || refused < 5 {
		t.Errorf("%d files are written, %d refused", written, refused)
	}
}

// Whatever is read can be written and read again, and can be played.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte(openFile))
	f.Add([]byte(strings.Replace(goodFile, `,"after":0`, "", 1)))
	f.Add([]byte(strings.Replace(goodFile, `leaf-spine:leaves=2,spines=2,hosts=2`, `fat-tree:k=4,host-rate=3`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := ParseFile(text)
		if err != nil {
			return
		}
		top, p, err := file.plan()
		if err != nil || len(p.flows) != len(file.Flows) || len(p.flows) > maxFlows {
			t.Fatalf("%d flows, %v", len(p.flows), err)
		}
		for i, w := range p.flows {
			if w.Src == w.Dst || !top.Valid(w.Src) || int(w.Dst) >= top.NumHosts() || w.Bytes < 1 || w.Start < 0 || p.follows(i) >= i || p.jobs > 0 && int(w.Job) >= p.jobs || i > 0 && w.Start < p.flows[i-1].Start {
				t.Fatalf("flow %d: %+v", i, w)
			}
		}
		again, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseFile(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}
