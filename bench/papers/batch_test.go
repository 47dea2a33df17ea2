package papers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory keeps parts as files do: written out, and read again.
type memory map[string][]byte

func (m memory) key(u Unit) string { return fmt.Sprint(u.Name, u.Seed) }

func (m memory) Get(u Unit) (*Part, error) {
	b, ok := m[m.key(u)]
	if !ok {
		return nil, nil
	}
	p := new(Part)
	return p, json.Unmarshal(b, p)
}

func (m memory) Put(u Unit, p *Part) (err error) {
	m[m.key(u)], err = json.Marshal(p)
	return err
}

// three are experiments with several seeds' figures, charts and statements.
func three(ran *int) []Subject {
	var mu sync.Mutex
	var list []Experiment
	for i := range 3 {
		e := fake()
		e.Name = fmt.Sprint("x-f", i)
		inner := e.Run
		e.Run = func(ctx context.Context, o Options) (*Outcome, error) {
			mu.Lock()
			*ran++
			mu.Unlock()
			o.Seed += 100 * uint64(i)
			return inner(ctx, o)
		}
		list = append(list, e)
	}
	return Subjects(list)
}

// written is all that a batch prints and draws.
func written(t *testing.T, b Batch) string {
	t.Helper()
	var s strings.Builder
	err := b.Run(t.Context(), func(_ int, r *Report, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteText(&s); err != nil {
			t.Fatal(err)
		}
		r.WallS, r.CPUS, r.RSSMB, r.PacketHopsPerCPUS, r.PeakOfProcess = 0, 0, 0, 0, false
		if err := errors.Join(Page{Reports: []*Report{r}}.Write(&s), json.NewEncoder(&s).Encode(r)); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

// Neither the number of jobs, nor what was kept, nor who has run it changes a byte.
func TestBatch_theSameBytes(t *testing.T) {
	for _, quick := range []bool{false, true} {
		ran := 0
		b := Batch{Subjects: three(&ran), Options: Options{Seed: 3, Seeds: 5, Jobs: 1, Quick: quick}}
		want := written(t, b)
		b.Jobs = 4
		if got := written(t, b); got != want {
			t.Errorf("-j 4:\n%s\n-j 1:\n%s", got, want)
		}
		kept := memory{}
		b.Keep = kept
		if got := written(t, b); got != want || len(kept) != 15 {
			t.Errorf("kept %d:\n%s\nplain:\n%s", len(kept), got, want)
		}
		ran = 0
		if got := written(t, b); got != want || ran > 0 {
			t.Errorf("%d run again, of what was kept:\n%s\nplain:\n%s", ran, got, want)
		}
		shards := memory{}
		b.Keep = shards
		for i := range 4 {
			b.Shard = Shard{i + 1, 4}
			if part := written(t, b); part != "" {
				t.Errorf("shard %d: %s", i+1, part)
			}
		}
		if ran != 15 {
			t.Errorf("shards have run %d units, want each of 15 once", ran)
		}
		b.Shard = Shard{}
		if got := written(t, b); got != want || ran != 15 {
			t.Errorf("merged, after %d runs:\n%s\nplain:\n%s", ran, got, want)
		}
	}
}

// What has ended when ctx ends is kept and told of, and the rest runs later.
func TestBatch_stopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l, kept := new(load), memory{}
		b := Batch{
			Subjects: Subjects([]Experiment{l.sweeping("a", 30), l.sweeping("b", 1), l.sweeping("c", 30)}),
			Options:  Options{Seed: 1, Jobs: 2}, Keep: kept,
		}
		b.Subjects[0].Run = func(ctx context.Context, o Options) (*Outcome, error) {
			<-ctx.Done() // the first never ends
			return nil, ctx.Err()
		}
		time.AfterFunc(5*time.Millisecond+time.Microsecond, stop)
		var told []string
		tell := func(_ int, r *Report, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			told = append(told, r.Experiment)
		}
		if err := b.Run(ctx, tell); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if !slices.Equal(told, []string{"b"}) || len(kept) != 1 {
			t.Errorf("told of %v, kept %d", told, len(kept))
		}
		synctest.Wait()
		time.Sleep(time.Second) // what was under way ends
		if len(l.began) > 1+5 {
			t.Errorf("began %v after it was stopped", l.began)
		}
		b.Subjects = b.Subjects[1:]
		told = nil
		if err := b.Run(t.Context(), tell); err != nil || !slices.Equal(told, []string{"b", "c"}) || len(kept) != 2 {
			t.Errorf("%v, told of %v, kept %d", err, told, len(kept))
		}
		if n := len(l.began); strings.Count(strings.Join(l.began, " "), "b1.0") != 1 || n < 31 {
			t.Errorf("began %v", l.began)
		}
	})
}

// A shard tells what fails, though it has not all seeds, and keeps what does not.
func TestBatch_failures(t *testing.T) {
	boom := errors.New("boom")
	odd := Experiment{Name: "odd", Run: func(_ context.Context, o Options) (*Outcome, error) {
		if o.Seed%2 == 1 {
			return nil, boom
		}
		return &Outcome{Rows: []Row{Within("a", "b", 1, 1, 1)}}, nil
	}}
	for _, shard := range []Shard{{}, {1, 2}} {
		kept := memory{}
		b := Batch{Subjects: Subjects([]Experiment{odd, fake()}), Options: Options{Seed: 1, Seeds: 6, Jobs: 3}, Keep: kept, Shard: shard}
		var failures, reports []string
		err := b.Run(t.Context(), func(_ int, r *Report, err error) {
			if err != nil {
				failures = append(failures, err.Error())
			} else {
				reports = append(reports, r.Experiment)
			}
		})
		all := shard.N == 0
		if err != nil || !slices.Equal(failures, []string{"odd: seed 1: boom"}) || (len(reports) == 1) != all || len(kept) != map[bool]int{true: 9, false: 3}[all] {
			t.Errorf("%+v: %v; failed %q, reports %q, kept %d", shard, err, failures, reports, len(kept))
		}
	}
	b := Batch{Subjects: Subjects([]Experiment{fake()}), Keep: torn{}}
	if err := b.Run(t.Context(), func(int, *Report, error) { t.Error("told though nothing can be read") }); err == nil || err.Error() != "torn" {
		t.Errorf("%v", err)
	}
}

// torn cannot be read.
type torn struct{ memory }

func (torn) Get(Unit) (*Part, error) { return nil, errors.New("torn") }

// Progress is by weight, and never goes back.
func TestTally(t *testing.T) {
	y := newTally([]float64{1, 0, 3, 4}, []int{3})
	want := func(what string, units, done, saved, perMille int) {
		t.Helper()
		if got := y.progress(); got != (Progress{units, done, saved, perMille, 500}) {
			t.Errorf("%s: %+v, want %d of %d, %d saved, %d", what, got, done, units, saved, perMille)
		}
	}
	want("kept", 3, 1, 1, 500)
	y.at(2, 1, 3)
	want("a third of 3", 3, 1, 1, 625)
	y.at(2, 0, 9)
	want("the next sweep", 3, 1, 1, 625)
	y.end(2, false)
	want("ended, and not kept", 3, 2, 1, 875)
	y.end(0, true)
	want("all", 3, 3, 2, 1000)
	if p := newTally(nil, nil).progress(); p.PerMille != 1000 {
		t.Errorf("nothing to do is done: %+v", p)
	}
}

// An outcome that is written and read says the same, whatever its charts have.
func TestOutcome_kept(t *testing.T) {
	third, paper := 1./3, 2.
	in := &Outcome{
		Because: "a < b", PacketHops: math.MaxUint64,
		Rows: []Row{
			Within("a", "b", third, third*1.1, 10), AtMost("c", "d", 5, 5.5, 10), AtLeast("e", "f", 5, 4.5, 10).Own(),
			Between("g", "h", -1, 1, 1.1, 10), Order("i", 2, 1), Claim("j", false), Info("k", "l", 1e300),
		},
		Settings: []Parameter{{Name: "n", Value: "v", Chosen: true, Why: "w"}, {Name: "m"}},
		Charts: []Chart{
			{Title: "t", X: "x", Y: "y", LogX: true, LogY: true, Lines: []Line{{"l", []float64{math.NaN(), math.Inf(-1), third}, []float64{math.Inf(1), 1e-300, -0.5}, []Point{{third, math.NaN()}, {1, 2}}}, {Name: "none"}}},
			{Title: "u", Bars: []Bar{{"b", math.NaN(), &paper}, {Name: "c", Ours: 1}}},
		},
	}
	b, err := json.Marshal(in)
	out := new(Outcome)
	if err := errors.Join(err, json.Unmarshal(b, out)); err != nil {
		t.Fatal(err)
	}
	if a, z := fmt.Sprintf("%+v", in.Charts[0]), fmt.Sprintf("%+v", out.Charts[0]); a != z {
		t.Errorf("%s, want %s", z, a)
	}
	if bars := out.Charts[1].Bars; !math.IsNaN(bars[0].Ours) || *bars[0].Paper != 2 || bars[1].Ours != 1 || bars[1].Paper != nil {
		t.Errorf("%+v", bars)
	}
	if !slices.Equal(out.Settings, in.Settings) || out.Because != in.Because || out.PacketHops != in.PacketHops {
		t.Errorf("%+v", out)
	}
	for i, r := range out.Rows {
		same := in.Rows[i]
		if r.Label != same.Label || r.Kind != same.Kind || r.Ours != same.Ours || r.OK != same.OK || r.Note != same.Note || r.Held != same.Held || r.Seeds != same.Seeds || (r.rule == nil) != (same.rule == nil) {
			t.Errorf("%+v, want %+v", r, same)
		}
		if r.rule != nil && (*r.rule != *same.rule || r.rule.holds(r.Ours) != r.OK || r.rule.holds(1e9) != (r.rule.Is == isAtLeast)) {
			t.Errorf("%s: rule %+v, want %+v", r.Label, *r.rule, *same.rule)
		}
	}
	for _, bad := range []string{`{}`, `{"rows":[{"label":1}]}`, `{"rows":[{"label":"a"}],"charts":[{"lines":[{"x":["one"]}]}]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), new(Outcome)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
