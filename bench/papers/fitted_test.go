package papers

import (
	"slices"
	"strings"
	"testing"
)

// fittedFirst are values of which the first is fitted.
func fittedFirst(values []DecisionValue) []DecisionValue {
	values = slices.Clone(values)
	values[0].Fitted = true
	return values
}

// A row that fixed a parameter keeps from agreeing where it fails, and is no more.
func TestJudge_fitted(t *testing.T) {
	good, bad := ofSeeds(Within("", "", 1, 1, 1), 5), ofSeeds(Within("", "", 1, 2, 1), 5)
	for _, c := range []struct {
		name string
		rows []Row
		want Verdict
	}{
		{"nothing else", []Row{good.Fitted(), good.Fitted()}, OnlyFitted},
		{"nothing else of the paper's", []Row{good.Fitted(), good.Own(), Info("", "", 7)}, OnlyFitted},
		{"not even that", []Row{good.Fitted(), bad.Fitted()}, Disagrees},
		{"with our own that fails", []Row{good.Fitted(), bad.Own()}, Disagrees},
		{"beside a bound", []Row{good.Fitted(), AtMost("", "", 5, 1, 10)}, OnlyBounds},
		{"beside an order", []Row{good.Fitted(), with(Order("", 2, 1), 5, 5)}, AgreesOrder},
		{"a fitted order is none", []Row{good.Fitted(), bad, with(Order("", 2, 1), 5, 5).Fitted()}, Disagrees},
		{"beside a value", []Row{good.Fitted(), good}, Agrees},
		{"that fails beside a value", []Row{bad.Fitted(), good}, Disagrees},
	} {
		if got := Judge(c.rows); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := ScoreOf([]Row{good.Fitted(), good, bad.Fitted()}); got != (Score{1, 1}) {
		t.Errorf("a fitted row scores: %v", got)
	}
	if passes(OnlyFitted) || passes(OnlyBounds) || bad.Fitted().out() {
		t.Error("what is fitted passes, or is out")
	}
}

// What fitted values alone move is not decided, and said apart.
func TestDecide_fitted(t *testing.T) {
	rows := func(buffer float64, _ Options) []Row {
		return []Row{Within("a", "m", 200, buffer, 10), AtLeast("b", "m", 300, buffer, 0), Within("b", "n", 7, 8, 1)}
	}
	fit := buffers("a b", "", "200")
	fit.Values[0].Fitted = true
	found, d := decide(t, buffered(rows, fit), Options{Seed: 1})
	if want := "none of 3 rows out decided; 1 row moved by a fit, which decides nothing: buffer 200 KB moves 1 row"; d.String() != want || !d.Any() || d.All() {
		t.Errorf("%q, want %q", d, want)
	}
	if !found[0].Fitted {
		t.Errorf("the finding does not say so: %+v", found[0])
	}
	var b strings.Builder
	if err := WriteFindings(&b, found); err != nil || !strings.Contains(b.String(), "200 KB, fitted (200)") || !strings.Contains(b.String(), "\n200 KB, fitted  disagrees  1 ") {
		t.Errorf("%v:\n%s", err, b.String())
	}
	// One that is not decides, and one that spans leaves to fits what they move.
	both := buffers("a b", "no port has more", "200", "400")
	both.Values = fittedFirst(both.Values)
	_, d = decide(t, buffered(rows, both), Options{Seed: 1})
	if want := "2 of 3 rows out decided by 1 seed: buffer 400 KB moves 1 row; no plausible buffer moves 1 row; 1 row moved by a fit, which decides nothing: buffer 200 KB moves 1 row"; d.String() != want {
		t.Errorf("%q, want %q", d, want)
	}
	var o Open
	o.Add(Disagrees, d)
	o.Add(Disagrees, Decided{Out: 2, Of: 1})
	o.Add(OnlyFitted, Decided{})
	if want := "0 of 2 that disagree, are undecided or have rows out are decided, and 1 by nothing but fits to their own figures; of their 5 rows out 2 are moved by another value of an open parameter, and 1 by no plausible one"; o.String() != want {
		t.Errorf("%s, want %s", o, want)
	}
}

// A value that breaks as many of the paper's rows as it moves decides nothing, nor may the
// row be called immovable. What is not the paper's may break.
func TestDecide_atWhatCost(t *testing.T) {
	for _, c := range []struct {
		name           string
		break1, break2 Row
		of             int
	}{
		{"fewer than it moves", AtMost("c", "m", 150, 0, 0), Info("d", "m", 0), 2},
		{"as many", AtMost("c", "m", 150, 0, 0), AtMost("d", "m", 150, 0, 0), 0},
		{"as many, of which one is our own", AtMost("c", "m", 150, 0, 0), AtMost("d", "m", 150, 0, 0).Own(), 2},
		{"as many, of which one chose a parameter", AtMost("c", "m", 150, 0, 0), AtMost("d", "m", 150, 0, 0).Fitted(), 0},
	} {
		e := buffered(func(buffer float64, _ Options) []Row {
			first, second := c.break1, c.break2
			if first.rule != nil {
				first = first.judged(buffer, *first.rule)
			}
			if second.rule != nil {
				second = second.judged(buffer, *second.rule)
			}
			return []Row{Within("a", "m", 200, buffer, 10), Within("a", "n", 200, buffer, 10), first, second}
		}, buffers("a", "no port has more", "200"))
		found, d := decide(t, e, Options{Seed: 1})
		if d.Of != c.of || d.Out != 2 {
			t.Errorf("%s: %+v, want %d", c.name, d, c.of)
		}
		var b strings.Builder
		if err := WriteFindings(&b, found); err != nil || strings.Contains(b.String(), "so it decides nothing") != (c.of == 0) {
			t.Errorf("%s: %v:\n%s", c.name, err, b.String())
		}
	}
}

// A value that breaks no more rows than it moves may do so of those that are left when another
// has its rows: then it decides nothing more, nor does a fit explain it.
func TestDecide_atWhatCostOfTheRest(t *testing.T) {
	rows := func(buffer float64, _ Options) []Row {
		return []Row{
			AtLeast("a", "m", 200, buffer, 0), AtLeast("a", "n", 200, buffer, 0), AtLeast("a", "o", 200, buffer, 0), Within("a", "p", 400, buffer, 1),
			AtMost("b", "m", 300, buffer, 0), AtMost("b", "n", 300, buffer, 0),
			Claim("a", buffer != 400), // so that 400 has fewer
		}
	}
	few := buffers("a", "", "250", "400")
	_, d := decide(t, buffered(rows, few), Options{Seed: 1})
	if want := "decided by 1 seed: buffer 400 KB moves 4 rows and breaks 3"; d.String() != want {
		t.Errorf("%q, want %q: of all that are out, 400 moves more than it breaks", d, want)
	}
	rest := func(buffer float64, o Options) []Row {
		all := rows(buffer, o)
		return append(all, AtMost("a", "q", 250, buffer+200, 0).judged(buffer, rule{Is: isBetween, A: 210, B: 260}), AtMost("a", "r", 250, buffer, 0).judged(buffer, rule{Is: isBetween, A: 210, B: 260}))
	}
	_, d = decide(t, buffered(rest, few), Options{Seed: 1})
	if want := "5 of 6 rows out decided by 1 seed: buffer 250 KB moves 5 rows"; d.String() != want {
		t.Errorf("%q, want %q: of the one that is left 400 breaks 3", d, want)
	}
	few.Values[1].Fitted = true
	if _, d = decide(t, buffered(rest, few), Options{Seed: 1}); d.Of != 5 || d.Fits != 0 {
		t.Errorf("a fit of the one that is left breaks 3: %+v", d)
	}
}

// What is against the paper's words is no open parameter: a row that no plausible value of
// others moves is immovable all the same, and what the words would have to be is said. By
// itself it decides nothing.
func TestDecide_againstWords(t *testing.T) {
	rows := func(buffer float64, o Options) []Row {
		ports := buffer
		if o.As("ports") == "ten" {
			ports = 10
		}
		return []Row{Within("a", "m", 10, ports, 10), Within("b", "m", 7, ports, 10)}
	}
	words := Decision{Parameter: "ports", About: []string{"a", "b"}, Against: "a switch has 100",
		Values: []DecisionValue{{Name: "ten", Replace: map[string]string{"ports": "ten"}, Fitted: true}}}
	spans := buffers("a b", "no port has more", "200")
	_, d := decide(t, buffered(rows, spans, words), Options{Seed: 1})
	if want := "decided by 1 seed: no plausible buffer moves 2 rows; against the paper's words ports ten moves 1 row"; d.String() != want || !d.All() {
		t.Errorf("%q, want %q", d, want)
	}
	_, d = decide(t, buffered(rows, words), Options{Seed: 1})
	if want := "none of 2 rows out decided; 1 row moved by a fit, which decides nothing: ports ten moves 1 row"; d.String() != want {
		t.Errorf("%q, want %q", d, want)
	}
	open := words
	open.Against = ""
	if _, d = decide(t, buffered(rows, spans, open), Options{Seed: 1}); d.Of != 0 {
		t.Errorf("where it is open, of which only a fit was tried: %+v", d)
	}
}

// A statement does not say on which side it fails, so a value between two may move it.
func TestDecide_statementsStraddle(t *testing.T) {
	e := buffered(func(buffer float64, _ Options) []Row {
		return []Row{Order("a", 300, buffer, 200), Claim("b", 250 < buffer && buffer < 350), Within("c", "m", 1, buffer, 10)}
	}, buffers("a b c", "no port has more", "200", "400"))
	if _, d := decide(t, e, Options{Seed: 1}); d.Of != 1 || d.Out != 3 {
		t.Errorf("300 moves both: %+v", d)
	}
	e.Decisions[0].Discrete = true
	if _, d := decide(t, e, Options{Seed: 1}); !d.All() {
		t.Errorf("where there is no 300: %+v", d)
	}
}

// An identity is that of what is set and compared, not of what comes out.
func TestIdentity(t *testing.T) {
	e := Experiment{Setting: []Parameter{{Name: "window", Value: "64 KB", Chosen: true, Why: "inferred"}}}
	rows := []Row{Within("a", "m", 200, 100, 10), Order("b", 2, 1), Info("c", "m", 7)}
	want := e.Identity(rows)
	other := []Row{Within("a", "m", 200, 150, 10), Order("b", 1, 2)}
	other[0].Seeds, other[1].Seeds = 5, 5
	e.Setting[0].Why = "said otherwise"
	if got := e.Identity(other); got != want {
		t.Errorf("other figures, reasons, and nothing to compare with: %s, want %s", got, want)
	}
	for name, got := range map[string]string{
		"paper":     e.Identity([]Row{Within("a", "m", 201, 100, 10), rows[1]}),
		"tolerance": e.Identity([]Row{Within("a", "m", 200, 100, 15), rows[1]}),
		"label":     e.Identity([]Row{Within("b", "m", 200, 100, 10), rows[1]}),
		"metric":    e.Identity([]Row{Within("a", "n", 200, 100, 10), rows[1]}),
		"kind":      e.Identity([]Row{rows[0].Fitted(), rows[1]}),
		"range":     e.Identity([]Row{Between("a", "m", 100, 300, 100, 10), rows[1]}),
		"order":     e.Identity(rows[:1]),
		"value":     Experiment{Setting: []Parameter{{Name: "window", Value: "65 KB", Chosen: true}}}.Identity(rows),
		"stated":    Experiment{Setting: []Parameter{{Name: "window", Value: "64 KB"}}}.Identity(rows),
		"nothing":   Experiment{}.Identity(rows),
	} {
		if got == want {
			t.Errorf("another %s has the same identity", name)
		}
	}
	// Reports, findings and trials have it.
	d := buffered(func(buffer float64, _ Options) []Row { return []Row{Within("a", "m", 200, buffer, 10)} }, buffers("a", "", "200"))
	found, _ := decide(t, d, Options{Seed: 1})
	if want := d.Identity([]Row{Within("a", "m", 200, 0, 10)}); found[0].Identity != want {
		t.Errorf("a finding has %q, want %q", found[0].Identity, want)
	}
}
