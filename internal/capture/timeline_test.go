package capture

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weft/encap"
)

// A timeline is what the Trace Event Format asks for, and no two slices of a line overlap. Each
// segment is on its path's track, from when it was sent to when it arrived.
func TestTimeline_isATrace(t *testing.T) {
	f := fatTree(t)
	a, line := NewAnnotator(NewTopology(f)), NewTimeline()
	r := rand.New(rand.NewPCG(24, 3))
	add := func(rec Record) {
		n := a.Note(&rec)
		line.Add(&rec, &n)
	}
	const segments = 200
	var all []Record
	for i := range segments {
		path := r.IntN(4)
		inner := tcp(here, there, uint32(1000*i), 1000, uint16(i/10*64+i%10))
		outer := by(t, f, encap.CarrierIPIP, path, inner)
		at := start.Add(time.Duration(i) * 10 * time.Microsecond)
		all = append(all, Record{At: at, Interface: "h0.0.2:p0", Out: true, Bytes: outer, Length: len(outer)})
		if i%20 == 19 { // lost, and sent again
			all = append(all, Record{At: at.Add(3 * time.Millisecond), Interface: "h0.0.2:p0", Out: true, Bytes: by(t, f, encap.CarrierIPIP, 0, tcp(here, there, uint32(1000*i), 1000, 999)), Length: len(outer)})
			continue
		}
		arrive := at.Add(time.Duration(50+r.IntN(500)) * time.Microsecond)
		all = append(all, Record{At: arrive, Interface: "h3.1.3:p0", Bytes: inner, Length: len(inner)},
			Record{At: arrive.Add(100 * time.Microsecond), Interface: "h3.1.3:weft-delivered", Point: PointDelivered, Bytes: inner, Length: len(inner), Hold: 100 * time.Microsecond, Cause: []string{"in-order", "filled"}[i%2]})
	}
	slices.SortStableFunc(all, func(a, b Record) int { return a.At.Compare(b.At) })
	for _, rec := range all {
		add(rec)
	}
	var b bytes.Buffer
	if _, err := line.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	counts := CheckTrace(t, b.Bytes())
	if counts["segment"] != segments || counts["retransmission"] != 2*segments/20 || counts["hold"] == 0 || counts["release"] != segments-segments/20 {
		t.Errorf("the trace has %v", counts)
	}
}

// CheckTrace checks a trace by its schema and returns how many events there are of each category.
func CheckTrace(t *testing.T, text []byte) map[string]int {
	t.Helper()
	var trace struct {
		Events []struct {
			Name  *string        `json:"name"`
			Phase string         `json:"ph"`
			Time  *float64       `json:"ts"`
			Dur   *float64       `json:"dur"`
			PID   *int           `json:"pid"`
			TID   *int           `json:"tid"`
			Cat   string         `json:"cat"`
			Scope string         `json:"s"`
			Args  map[string]any `json:"args"`
		} `json:"traceEvents"`
		Unit  string            `json:"displayTimeUnit"`
		Other map[string]string `json:"otherData"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	if trace.Unit != "ms" {
		t.Errorf("displayTimeUnit is %q", trace.Unit)
	}
	counts, named, ends := make(map[string]int), make(map[[2]int]bool), make(map[[2]int]float64)
	for i, e := range trace.Events {
		if e.Name == nil || e.PID == nil || e.TID == nil || e.Time == nil {
			t.Fatalf("event %d lacks a name, ts, pid or tid: %+v", i, e)
		}
		k := [2]int{*e.PID, *e.TID}
		switch e.Phase {
		case "M":
			if name, ok := e.Args["name"].(string); !ok || name == "" || *e.Name != "process_name" && *e.Name != "thread_name" {
				t.Errorf("event %d names nothing: %+v", i, e)
			}
			named[k] = true
			continue
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				t.Fatalf("event %d has no duration: %+v", i, e)
			}
			if *e.Time < ends[k]-1e-6 {
				t.Errorf("event %d begins at %f on a line that is taken until %f", i, *e.Time, ends[k])
			}
			ends[k] = *e.Time + *e.Dur
		case "i":
			if e.Scope != "t" {
				t.Errorf("event %d: scope %q", i, e.Scope)
			}
		default:
			t.Errorf("event %d: phase %q", i, e.Phase)
		}
		if !named[k] || !named[[2]int{*e.PID, 0}] {
			t.Errorf("event %d is on a line without a name: %v", i, k)
		}
		counts[e.Cat]++
	}
	return counts
}
