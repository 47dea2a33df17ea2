package fct

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"weft/bench/sim/workload"
	"weft/topology"
)

// File is the flows of one run, for weft bench fct and weft sim fct. It is JSON.
type File struct {
	Topology   string     `json:"topology"`  // a specification
	RateMbit   float64    `json:"rate_mbit"` // of links for which the topology has no rate
	Workload   string     `json:"workload"`  // whose sizes; like the next one only for the results
	Traffic    string     `json:"traffic"`
	Load       float64    `json:"load"`  // what the flows offer, about
	Scale      float64    `json:"scale"` // of the sizes: it bounds mice and elephants
	Seed       uint64     `json:"seed"`
	DurationUs int64      `json:"duration_us"` // in which flows begin
	Flows      []FileFlow `json:"flows"`       // in the order of start_us
}

// FileFlow is a flow of a File.
type FileFlow struct {
	StartUs int64  `json:"start_us"`
	Src     string `json:"src"` // hosts by their names
	Dst     string `json:"dst"`
	Bytes   int64  `json:"bytes"`
	// Job is the flow's job, numbered from 0; all flows have one, or none.
	Job *int `json:"job,omitempty"`
	// After is the number of the flow, from 0, that must end before this one begins.
	After *int `json:"after,omitempty"`
}

// MaxFile bounds a File's text in bytes.
const MaxFile = 32 << 20

const (
	maxFlowBytes  = 1 << 40
	maxDuration   = 24 * time.Hour
	maxFileNodes  = 1500 // as of a lab
	maxScale      = 1000
	minRateMbit   = 0.001
	maxRateMbit   = 1e6
	maxNameLength = 200
)

// file makes a File of a run's flows.
func (o *Options) file(load float64, seed uint64, p plan) File {
	f := File{Topology: o.Topology.String(), RateMbit: o.RateMbit, Workload: o.WorkloadName(), Traffic: o.Traffic, Load: load,
		Scale: o.Scale, Seed: seed, DurationUs: o.Duration.Microseconds(), Flows: make([]FileFlow, len(p.flows))}
	name := func(h topology.NodeID) string { return o.Topology.Node(h).Name }
	for i, w := range p.flows {
		one := FileFlow{StartUs: w.Start.Microseconds(), Src: name(w.Src), Dst: name(w.Dst), Bytes: w.Bytes}
		if p.jobs > 0 {
			one.Job = new(int)
			*one.Job = int(w.Job)
		}
		if after := p.follows(i); after >= 0 {
			one.After = &after
		}
		f.Flows[i] = one
	}
	return f
}

// WriteFile writes the flows of the first load in the first round, one a line. The file's load is
// what they offer.
func (o *Options) WriteFile(w io.Writer) error {
	if len(o.Loads) != 1 {
		return fmt.Errorf("loads: a workload file has one, and %d are given", len(o.Loads))
	}
	if down := o.Topology.Down(); len(down) > 0 {
		return fmt.Errorf("topology: %d links are down, which a workload file does not say: leave it to failure", len(down))
	}
	p, err := o.plan(o.Loads[0], o.Seed)
	if err != nil {
		return err
	}
	load, err := o.writtenLoad(o.Loads[0], o.Seed, &p)
	if err != nil {
		return err
	}
	f := o.file(load, o.Seed, p)
	flows := f.Flows
	f.Flows = []FileFlow{}
	head, err := json.Marshal(f)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("]}")))
	separator := "\n"
	for _, one := range flows {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		b.WriteString(separator)
		b.Write(line)
		separator = ",\n"
	}
	b.WriteString("\n]}\n")
	_, err = w.Write(b.Bytes())
	return err
}

// ParseFile reads a File. Errors name the field.
func ParseFile(text []byte) (*File, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("workload file: %d bytes are more than %d", len(text), MaxFile)
	}
	f := new(File)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("workload file: %w", inWords(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("workload file: there is more after the object: remove it")
	}
	if _, _, err := f.plan(); err != nil {
		return nil, fmt.Errorf("workload file: %w", err)
	}
	return f, nil
}

// inWords says what is wrong with a File's JSON.
func inWords(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s: a %s cannot stand there at byte %d: write a %s", kind.Field, kind.Value, kind.Offset, kind.Type)
	case errors.As(err, &syntax):
		return fmt.Errorf("it is no JSON from byte %d on: weft bench fct --write-workload makes one", syntax.Offset)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early: weft bench fct --write-workload makes one")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: ") + ": remove it, or see weft sim fct --help")
}

// plan checks a File, and returns its fabric and its flows.
func (f *File) plan() (t *topology.Topology, p plan, err error) {
	within := func(x, low, high float64) bool { return x >= low && x <= high }
	switch {
	case len(f.Workload) > maxNameLength || len(f.Traffic) > maxNameLength:
		return nil, p, fmt.Errorf("workload, traffic: longer than %d letters", maxNameLength)
	case !within(f.RateMbit, minRateMbit, maxRateMbit):
		return nil, p, fmt.Errorf("rate_mbit: %g: must be from %g to %g", f.RateMbit, minRateMbit, float64(maxRateMbit))
	case !(f.Load > 0 && f.Load <= 1):
		return nil, p, fmt.Errorf("load: %g: must be above 0, at most 1", f.Load)
	case !(f.Scale > 0 && f.Scale <= maxScale):
		return nil, p, fmt.Errorf("scale: %g: must be above 0, at most %d", f.Scale, maxScale)
	case f.DurationUs < 1 || f.DurationUs > maxDuration.Microseconds():
		return nil, p, fmt.Errorf("duration_us: %d: must be from 1 to %d", f.DurationUs, maxDuration.Microseconds())
	case len(f.Flows) == 0 || len(f.Flows) > maxFlows:
		return nil, p, fmt.Errorf("flows: %d: must be from 1 to %d", len(f.Flows), maxFlows)
	}
	if t, err = topology.Parse(f.Topology); err != nil {
		return nil, p, fmt.Errorf("topology: %w", err)
	}
	if n := t.NumNodes(); n > maxFileNodes {
		return nil, p, fmt.Errorf("topology: %d hosts and switches, %d are the most", n, maxFileNodes)
	}
	hosts := make(map[string]topology.NodeID)
	for n := range t.Hosts() {
		hosts[n.Name] = n.ID
	}
	for i := range f.Flows {
		if err := f.add(&p, hosts, i); err != nil {
			return nil, p, fmt.Errorf("flows[%d].%w", i, err)
		}
	}
	return t, p, f.checkLoad(t, &p)
}

// add checks a flow and appends it. Errors begin with the field.
func (f *File) add(p *plan, hosts map[string]topology.NodeID, i int) error {
	one := &f.Flows[i]
	src, known := hosts[one.Src]
	if !known {
		return fmt.Errorf("src: %q: %s has no such host", one.Src, f.Topology)
	}
	dst, known := hosts[one.Dst]
	if !known {
		return fmt.Errorf("dst: %q: %s has no such host", one.Dst, f.Topology)
	}
	switch {
	case src == dst:
		return fmt.Errorf("dst: %s is the sender: name another host", one.Dst)
	case one.Bytes < 1 || one.Bytes > maxFlowBytes:
		return fmt.Errorf("bytes: %d: must be from 1 to %d", one.Bytes, int64(maxFlowBytes))
	case one.StartUs < 0 || one.StartUs > f.DurationUs:
		return fmt.Errorf("start_us: %d: must be from 0 to duration_us, %d", one.StartUs, f.DurationUs)
	case i > 0 && one.StartUs < f.Flows[i-1].StartUs:
		return fmt.Errorf("start_us: %d: is before the flow above, which begins at %d: sort flows by it", one.StartUs, f.Flows[i-1].StartUs)
	case one.After != nil && (*one.After < 0 || *one.After >= i):
		return fmt.Errorf("after: %d: must be the number of a flow above, from 0 to %d", *one.After, i-1)
	case (one.Job != nil) != (f.Flows[0].Job != nil):
		return errors.New("job: some flows have one and some have none: all or none")
	case one.Job != nil && (*one.Job < 0 || *one.Job > min(p.jobs, math.MaxInt32)):
		return fmt.Errorf("job: %d: must be from 0 to %d: jobs are numbered as they begin", *one.Job, p.jobs)
	}
	w := workload.Flow{Start: time.Duration(one.StartUs) * time.Microsecond, Src: src, Dst: dst, Bytes: one.Bytes}
	after := -1
	if one.After != nil {
		after = *one.After
	}
	if one.Job != nil {
		w.Job = uint32(*one.Job)
		p.jobs = max(p.jobs, *one.Job+1)
	}
	p.add(w, after)
	return nil
}
