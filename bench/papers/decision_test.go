package papers

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/bench/sim"
)

// buffered is an experiment whose figures depend on a buffer, which is 100 by itself.
func buffered(rows func(buffer float64, o Options) []Row, decisions ...Decision) Experiment {
	e := mutable(func(o Options) []Row {
		buffer, err := strconv.ParseFloat(o.As("100"), 64)
		if err != nil {
			panic(err)
		}
		return rows(buffer, o)
	})
	e.Decisions = decisions
	return e
}

// buffers are values of a buffer. Those that span all bring figures as near to the paper's as any.
func buffers(about, ends string, values ...string) Decision {
	d := Decision{Parameter: "buffer", About: strings.Fields(about), Ends: ends, Nearest: ends}
	for _, v := range values {
		d.Values = append(d.Values, DecisionValue{Name: v + " KB", Replace: map[string]string{"100": v}})
	}
	return d
}

// decide runs an experiment with the values of its decisions.
func decide(t *testing.T, e Experiment, o Options) ([]Finding, Decided) {
	t.Helper()
	subjects, err := WithDecisions([]Experiment{e})
	if err != nil {
		t.Fatal(err)
	}
	reports := reportsOf(t, subjects, o)
	found := Findings(subjects, o, reports)
	return found, Decide(e, reports[0], found)
}

func labels(figures []Figure) string {
	var all []string
	for _, f := range figures {
		all = append(all, f.Label)
	}
	return strings.Join(all, " ")
}

func TestFindings(t *testing.T) {
	d := buffers("a b c d e f g", "", "200", "400")
	e := buffered(func(buffer float64, o Options) []Row {
		return []Row{
			Within("a", "m", 200, buffer, 10),    // out, and OK with 200 alone
			Within("b", "m", 7, buffer, 10),      // out with each
			AtMost("c", "m", 150, buffer, 0),     // OK, and out with each value
			Order("d", buffer, 300),              // out, and OK with 400
			Claim("e", buffer > 100),             // out, and OK with both
			Within("f", "m", 1, 1, 1),            // OK
			Within("g", "m", 1, buffer, 1).Own(), // not the paper's
			Info("g", "n", buffer),               // nothing to compare with
			Within("x", "m", 400, buffer, 10),    // About says nothing of it
			AtMost("y", "m", 300, buffer, 0).Own(),
			Sign("d2", o.Seed%2 == 1 || buffer == 400), // within the spread of seeds
		}
	}, d)
	found, _ := decide(t, e, Options{Seed: 7, Seeds: EnoughSeeds})
	want := []struct{ value, moved, unmoved, broken string }{
		{"200 KB", "a e", "b d d2", "c"},
		{"400 KB", "d e d2", "a b", "c y"},
	}
	if len(found) != len(want) {
		t.Fatalf("%+v", found)
	}
	for i, w := range want {
		f := found[i]
		if f.Value != w.value || labels(f.Moved) != w.moved || labels(f.Unmoved) != w.unmoved || labels(f.Broken) != w.broken {
			t.Errorf("%+v, want %+v", f, w)
		}
		if f.Experiment != "x" || f.Parameter != "buffer" || f.Seed != 7 || f.Seeds != EnoughSeeds || f.Out != 6 || f.Itself != Disagrees || f.Verdict == "" {
			t.Errorf("%+v", f)
		}
	}
	if a := found[0].Moved[0]; a.Itself != 100 || a.Ours != 200 || a.Paper == nil || *a.Paper != 200 || a.Metric != "m" {
		t.Errorf("%+v", a)
	}
	b, err := json.Marshal(found)
	var again []Finding
	if err != nil || json.Unmarshal(b, &again) != nil || !reflect.DeepEqual(again, found) {
		t.Errorf("%v: %s is read as %+v", err, b, again)
	}
	// With few seeds no order is beyond their spread, and those that hold are OK.
	found, _ = decide(t, e, Options{Seed: 7})
	if f := found[0]; f.Out != 5 || labels(f.Unmoved) != "b d" || f.Seeds != 1 {
		t.Errorf("%+v", f)
	}
}

func TestDecide(t *testing.T) {
	rows := func(buffer float64, _ Options) []Row {
		return []Row{Within("a", "m", 200, buffer, 10), Within("b", "m", 400, buffer, 10), Within("b", "n", 400, buffer, 10), Within("c", "m", 7, 8, 1), AtMost("d", "m", 300, buffer, 0)}
	}
	both := func(ends string) Decision { return buffers("a b c", ends, "200", "400") }
	other := Decision{Parameter: "delay", About: []string{"c"}, Values: []DecisionValue{{Name: "1", Tune: func(*sim.Config) {}}}}
	spans := other
	spans.Ends, spans.Nearest = "light is not faster", "nor does it wait"
	for _, c := range []struct {
		name      string
		decisions []Decision
		all       bool
		want      string
	}{
		{"all is moved or cannot be", []Decision{both("no port has more")}, true,
			"decided by 1 seed: buffer 400 KB moves 2 rows and breaks 1; buffer 200 KB moves 1 row; no plausible buffer moves 1 row"},
		{"what no value moves, of which more are plausible", []Decision{both("")}, false,
			"3 of 4 rows out decided by 1 seed: buffer 400 KB moves 2 rows and breaks 1; buffer 200 KB moves 1 row"},
		{"fewer values, which span all", []Decision{buffers("a b c", "ends", "200")}, true,
			"decided by 1 seed: buffer 200 KB moves 1 row; no plausible buffer moves 3 rows"},
		{"a second parameter that is still open", []Decision{both("no port has more"), other}, false,
			"3 of 4 rows out decided by 1 seed: buffer 400 KB moves 2 rows and breaks 1; buffer 200 KB moves 1 row"},
		{"a second parameter that is not", []Decision{both("no port has more"), spans}, true,
			"decided by 1 seed: buffer 400 KB moves 2 rows and breaks 1; buffer 200 KB moves 1 row; no plausible buffer or delay moves 1 row"},
		{"a row of which nothing speaks", []Decision{buffers("a b", "ends", "200", "400")}, false,
			"3 of 4 rows out decided by 1 seed: buffer 400 KB moves 2 rows and breaks 1; buffer 200 KB moves 1 row"},
		{"nothing", []Decision{buffers("d", "ends", "200")}, false, "none of 4 rows out decided"},
	} {
		_, d := decide(t, buffered(rows, c.decisions...), Options{Seed: 1})
		if d.All() != c.all || d.String() != c.want {
			t.Errorf("%s: %v, %q, want %v, %q", c.name, d.All(), d, c.all, c.want)
		}
	}
	// Of values that move as many the one that breaks less is named, and one that moves more
	// before both.
	pick := func(values ...string) string {
		_, d := decide(t, buffered(func(buffer float64, _ Options) []Row {
			return []Row{AtLeast("a", "m", 200, buffer, 0), AtLeast("a", "n", 500, buffer, 0), AtMost("b", "m", 300, buffer, 0)}
		}, buffers("a", "", values...)), Options{Seed: 1})
		return d.By
	}
	if got := pick("400", "300"); got != "buffer 300 KB moves 1 row" {
		t.Error(got)
	}
	if got := pick("300", "600"); got != "buffer 600 KB moves 2 rows and breaks 1" {
		t.Error(got)
	}
}

// A decision whose values only take a row further from the paper's figure does not make it
// immovable, unless it says why none can bring it nearer. It does not keep another from it.
// Where no row is the paper's, our own make the verdict: they are to be moved, and may be broken.
func TestDecide_ownAlone(t *testing.T) {
	rows := func(more ...Row) func(float64, Options) []Row {
		return func(buffer float64, _ Options) []Row {
			return append([]Row{Within("a", "m", 200, buffer, 10).Own(), Within("a", "n", 200, buffer, 10).Own(), AtMost("b", "m", 150, buffer, 0).Own()}, more...)
		}
	}
	for _, c := range []struct {
		rows func(float64, Options) []Row
		want string
	}{
		{rows(), "decided by 5 seeds: buffer 200 KB moves 2 rows and breaks 1"},
		{rows(Within("c", "m", 1, 1, 1)), "none of 0 rows out decided"}, // the paper's is as it should be
	} {
		_, decided := decide(t, buffered(c.rows, buffers("a b", "", "200", "400")), Options{Seed: 7, Seeds: EnoughSeeds})
		if got := decided.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestDecide_nearer(t *testing.T) {
	rows := func(buffer float64, _ Options) []Row {
		return []Row{Within("a", "m", 1000, buffer, 10), Within("b", "m", 7, buffer, 10), Within("c", "m", 7, 100, 10), Claim("d", false)}
	}
	both := buffers("a b c d", "ends", "200", "400")
	both.Nearest, both.Discrete = "", true
	_, d := decide(t, buffered(rows, both), Options{Seed: 1})
	if want := "1 of 4 rows out decided by 1 seed: no plausible buffer moves 1 row"; d.String() != want {
		t.Errorf("%q, want %q: a comes nearer, b goes away, c stays, and d does not say", d, want)
	}
	said := both
	said.Nearest = "a buffer only grows"
	if _, d := decide(t, buffered(rows, said), Options{Seed: 1}); !d.All() {
		t.Errorf("where it is said: %+v", d)
	}
	delay := Decision{Parameter: "delay", About: []string{"a", "b"}, Ends: "ends", Discrete: true,
		Values: []DecisionValue{{Name: "1", Replace: map[string]string{"100": "50"}}}}
	_, d = decide(t, buffered(rows, both, delay), Options{Seed: 1})
	if want := "2 of 4 rows out decided by 1 seed: no plausible buffer moves 1 row; no plausible delay moves 1 row"; d.String() != want {
		t.Errorf("%q, want %q", d, want)
	}
}

// Where the paper's figure is between those with two values, a value between may give it,
// unless there is none.
func TestDecide_between(t *testing.T) {
	e := buffered(func(buffer float64, _ Options) []Row {
		return []Row{Within("a", "m", 300, buffer, 10), Within("a", "n", 150, buffer, 10), AtMost("a", "o", 50, buffer, 0), Order("a", 1, buffer)}
	}, buffers("a", "ends", "200"))
	if _, d := decide(t, e, Options{Seed: 1}); d.Of != 2 || d.Out != 4 {
		t.Errorf("150 is between 100 and 200, and an order does not say: %+v", d)
	}
	e.Decisions = []Decision{buffers("a", "ends", "200", "400")}
	found, d := decide(t, e, Options{Seed: 1})
	if d.Of != 1 {
		t.Errorf("300 is between 200 and 400, and 150 as before: %+v", d)
	}
	var b strings.Builder
	if err := WriteFindings(&b, found); err != nil || strings.Count(b.String(), "none of 200 KB (200), 400 KB (400), but maybe one between\n") != 2 {
		t.Errorf("%v:\n%s", err, b.String())
	}
	e.Decisions[0].Discrete = true
	if found, d = decide(t, e, Options{Seed: 1}); !d.All() {
		t.Errorf("of discrete ones: %+v", d)
	}
	b.Reset()
	if err := WriteFindings(&b, found); err != nil || strings.Contains(b.String(), "between") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

// What is said stands on findings of the present decisions in full, of all their values.
func TestDecide_onlyByWhatWasTried(t *testing.T) {
	e := buffered(func(buffer float64, _ Options) []Row {
		return []Row{Within("a", "m", 200, buffer, 10), Within("b", "m", 1, buffer, 10)}
	}, buffers("a b", "ends", "200", "400"))
	found, d := decide(t, e, Options{Seed: 1})
	rows := []Row{Within("a", "m", 200, 100, 10), Within("b", "m", 1, 100, 10)}
	same := Report{Seed: 1, Rows: rows, Identity: e.Identity(rows)}
	if !d.All() || d != Decide(e, &same, found) {
		t.Fatalf("%+v", d)
	}
	for name, c := range map[string]struct {
		spoil func(e *Experiment, found *[]Finding, r *Report)
		of    int
	}{
		"quick":                 {func(_ *Experiment, f *[]Finding, _ *Report) { (*f)[0].Quick, (*f)[1].Quick = true, true }, 0},
		"of another experiment": {func(_ *Experiment, f *[]Finding, _ *Report) { (*f)[0].Experiment, (*f)[1].Experiment = "y", "y" }, 0},
		"a value is missing":    {func(_ *Experiment, f *[]Finding, _ *Report) { *f = (*f)[:1] }, 1},
		"the value that moves":  {func(_ *Experiment, f *[]Finding, _ *Report) { *f = (*f)[1:] }, 0},
		"another parameter":     {func(e *Experiment, _ *[]Finding, _ *Report) { e.Decisions[0].Parameter = "delay" }, 0},
		"a new value": {func(e *Experiment, _ *[]Finding, _ *Report) {
			e.Decisions[0].Values = append(slices.Clone(e.Decisions[0].Values), DecisionValue{Name: "9"})
		}, 1},
		"speaks of a no more":      {func(e *Experiment, _ *[]Finding, _ *Report) { e.Decisions[0].About = []string{"b"} }, 1},
		"no longer without ends":   {func(e *Experiment, _ *[]Finding, _ *Report) { e.Decisions[0].Ends = "" }, 1},
		"was not out, when tried":  {func(_ *Experiment, f *[]Finding, _ *Report) { (*f)[1].Unmoved = nil }, 1},
		"without decisions at all": {func(e *Experiment, _ *[]Finding, _ *Report) { e.Decisions = nil }, 0},
		"a value that is fitted": {func(e *Experiment, _ *[]Finding, _ *Report) {
			e.Decisions[0].Values = fittedFirst(e.Decisions[0].Values)
		}, 1},
		"of another setting or row": {func(_ *Experiment, _ *[]Finding, r *Report) { r.Identity = "another" }, 0},
		"of we know not which": {func(_ *Experiment, f *[]Finding, r *Report) {
			(*f)[0].Identity, (*f)[1].Identity, r.Identity = "", "", ""
		}, 0},
		"of an earlier seed":   {func(_ *Experiment, _ *[]Finding, r *Report) { r.Seed, r.Seeds = 2, 5 }, 0},
		"of more seeds":        {func(_ *Experiment, f *[]Finding, _ *Report) { (*f)[0].Seeds, (*f)[1].Seeds = 2, 2 }, 0},
		"of some of its seeds": {func(_ *Experiment, _ *[]Finding, r *Report) { r.Seeds = 5 }, 2},
	} {
		e, found, r := e, slices.Clone(found), same
		e.Decisions = slices.Clone(e.Decisions)
		c.spoil(&e, &found, &r)
		if d := Decide(e, &r, found); d.Of != c.of || d.Out != 2 {
			t.Errorf("%s: %+v, want %d", name, d, c.of)
		}
	}
	if d := Decide(e, &Report{Seed: 1, Identity: same.Identity}, found); d.All() || d.Out != 0 {
		t.Errorf("nothing is out, and all of it is decided: %+v", d)
	}
}

func TestOpen(t *testing.T) {
	var o Open
	for v, d := range map[Verdict]Decided{Agrees: {Out: 1, Of: 1}, AgreesOrder: {}, Undecided: {}, Disagrees: {Out: 2, Of: 2}} {
		o.Add(v, d)
	}
	o.Add(AgreesOrder, Decided{Out: 2, Of: 1})
	if want := "1 of 3 that disagree, are undecided or have rows out are decided; of their 4 rows out 3 are moved by another value of an open parameter, and 0 by no plausible one"; o.String() != want {
		t.Errorf("%s, want %s", o, want)
	}
}

// An order that a value moves with one seed is a coin's throw beside a report with enough of them.
func TestDecide_ordersNeedSeeds(t *testing.T) {
	e := buffered(func(buffer float64, o Options) []Row {
		return []Row{Order("a > b", buffer, 150), Within("a", "m", 200, buffer, 10)}
	}, buffers("a", "", "200"))
	found, d := decide(t, e, Options{Seed: 1})
	if d.Of != 2 {
		t.Fatalf("beside a report with one seed: %v", d)
	}
	subjects, err := WithDecisions([]Experiment{e})
	if err != nil {
		t.Fatal(err)
	}
	many := reportsOf(t, subjects, Options{Seed: 1, Seeds: EnoughSeeds})
	if d := Decide(e, many[0], found); d.Of != 1 || d.Out != 2 {
		t.Errorf("beside a report with %d: %v", EnoughSeeds, d)
	}
	if d := Decide(e, many[0], Findings(subjects, Options{Seed: 1, Seeds: EnoughSeeds}, many)); d.Of != 2 {
		t.Errorf("with as many seeds: %v", d)
	}
}

// A value that could not be run costs its own finding and no other, and what was not tried is not
// taken for what moves nothing.
func TestFindings_ofSome(t *testing.T) {
	e := buffered(func(buffer float64, o Options) []Row {
		return []Row{Within("a", "m", 1000, buffer, 10)}
	}, buffers("a", "there is no other", "200", "400"))
	subjects, err := WithDecisions([]Experiment{e, e})
	if err != nil {
		t.Fatal(err)
	}
	all := reportsOf(t, subjects, Options{Seed: 1})
	for missing, want := range []string{"200 400", "400 200 400", "200 200 400", "200 400", "200 400 400", "200 400 200"} {
		reports := slices.Clone(all)
		reports[missing] = nil
		found := Findings(subjects, Options{Seed: 1}, reports)
		var values []string
		for _, f := range found {
			values = append(values, strings.TrimSuffix(f.Value, " KB"))
		}
		if got := strings.Join(values, " "); got != want {
			t.Errorf("without report %d: %s, want %s", missing, got, want)
		}
		if d := Decide(e, all[0], found[:min(1, len(found))]); d.Of != 0 {
			t.Errorf("one of two values decides: %v", d)
		}
	}
}

func TestWithDecisions_refuses(t *testing.T) {
	tune := func(*sim.Config) {}
	value := DecisionValue{Name: "v", Tune: tune}
	for want, d := range map[string][]Decision{
		`x: decision "p": has no values`:                                           {{Parameter: "p", About: []string{"a"}}},
		`x: decision "p": About is empty`:                                          {{Parameter: "p", Values: []DecisionValue{value}}},
		`x: a decision has no Parameter`:                                           {{About: []string{"a"}, Values: []DecisionValue{value}}},
		`x: decision "p": value 1 has no Name`:                                     {{Parameter: "p", About: []string{"a"}, Values: []DecisionValue{{Tune: tune}}}},
		`x: decision "p": value "v" changes nothing`:                               {{Parameter: "p", About: []string{"a"}, Values: []DecisionValue{{Name: "v"}}}},
		`x: decision "p": value "v" occurs twice`:                                  {{Parameter: "p", About: []string{"a"}, Values: []DecisionValue{value, value}}},
		`x: decision "p" occurs twice`:                                             {{Parameter: "p", About: []string{"a"}, Values: []DecisionValue{value}}, {Parameter: "p", About: []string{"a"}, Values: []DecisionValue{value}}},
		`x: decision "p": Nearest is of values that span all`:                      {{Parameter: "p", About: []string{"a"}, Nearest: "zero is nothing", Values: []DecisionValue{value}}},
		`none of these experiments has a decision`:                                 nil,
		`x: decision "p": all values are fitted, and span nothing`:                 {{Parameter: "p", About: []string{"a"}, Ends: "chance", Values: []DecisionValue{{Name: "v", Tune: tune, Fitted: true}}}},
		`x: decision "p": what is against the paper's words is no plausible value`: {{Parameter: "p", About: []string{"a"}, Against: "so it says", Values: []DecisionValue{value}}},
	} {
		if subjects, err := WithDecisions([]Experiment{{Name: "x", Decisions: d}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d subjects, %v, want %s", len(subjects), err, want)
		}
	}
	// Those without decisions are left out, and the rest has one subject more than values.
	subjects, err := WithDecisions([]Experiment{fake(), buffered(nil, buffers("a", "", "1", "2"))})
	if err != nil || len(subjects) != 3 || subjects[0].Variant != nil || subjects[2].Variant.String() != `buffer "2 KB"` {
		t.Errorf("%+v, %v", subjects, err)
	}
}

func TestWriteFindings(t *testing.T) {
	e := buffered(func(buffer float64, _ Options) []Row {
		return []Row{Within("DRB", "Mbit/s", 200, buffer, 10), Within("RB", "Mbit/s", 7, buffer, 10), AtMost("ECMP", "Mbit/s", 300, buffer, 0)}
	}, buffers("DRB RB", "no port has more", "200", "400"), Decision{Parameter: "delay", About: []string{"none"}, Values: []DecisionValue{{Name: "1 µs", Tune: func(*sim.Config) {}}}})
	found, _ := decide(t, e, Options{Seed: 1})
	var b strings.Builder
	if err := WriteFindings(&b, found); err != nil {
		t.Fatal(err)
	}
	const want = `x: buffer
By 1 seed. The experiment itself: disagrees; 2 rows out, of which the decision speaks of 2. The values span all that is plausible: no port has more.

row that is out  metric  paper  ours  moved by
DRB              Mbit/s  200    100   200 KB (200)
RB               Mbit/s  7      100   none of 200 KB (200), 400 KB (400)

value   verdict    moves  breaks
200 KB  disagrees  1      0
400 KB  disagrees  0      1: ECMP, Mbit/s (100 to 400)

x: delay
By 1 seed. The experiment itself: disagrees; 2 rows out, of which the decision speaks of 0. The values do not span all that is plausible.

value  verdict    moves  breaks
1 µs   disagrees  0      0

`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	if err := WriteFindings(brokenWriter{}, found); err == nil {
		t.Error("no error of the writer's")
	}
}

// A report says what decides its rows that are out, beside its verdict.
func TestReport_saysWhatDecides(t *testing.T) {
	r := run(t, fake(), Options{Seed: 1})
	r.Decided = &Decided{Out: 3, Of: 3, By: "buffer 160 KB moves 3 rows", Seeds: 2}
	const want = "Rows that are out: decided by 2 seeds: buffer 160 KB moves 3 rows."
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "\n"+want+"\n") {
		t.Errorf("%v:\n%s", err, b.String())
	}
	_, words := page(t, Page{Reports: []*Report{r}})
	for _, s := range []string{want, "; decided by 2 seeds: buffer 160 KB moves 3 rows", "; 1 of 1 that disagree, are undecided or have rows out are decided"} {
		if !strings.Contains(words, s) {
			t.Errorf("no %q on the page", s)
		}
	}
	r.Decided = &Decided{Out: 3}
	b.Reset()
	_, words = page(t, Page{Reports: []*Report{r}})
	if err := r.WriteText(&b); err != nil || strings.Contains(b.String(), "Rows that are out") || strings.Contains(words, "Rows that are out") || !strings.Contains(words, "; 0 of 1 that disagree") {
		t.Errorf("%v, of nothing decided:\n%s\n%s", err, b.String(), words)
	}
}
