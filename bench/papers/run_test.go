package papers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"weft/internal/golden"
)

func text(t *testing.T, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func run(t *testing.T, e Experiment, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReport_golden(t *testing.T) {
	for _, seeds := range []int{0, 1} { // both are one
		o := Options{Seed: 1, Seeds: seeds, Jobs: 1, Quick: true}
		goldens(t, "report", run(t, fake(), o))
	}
}

func TestReport_goldenOfSeeds(t *testing.T) {
	goldens(t, "seeds", run(t, fake(), Options{Seed: 1, Seeds: 3, Jobs: 2}))
}

// goldens compares a report with files in testdata.
func goldens(t *testing.T, name string, r *Report) {
	t.Helper()
	golden.Check(t, name+".txt", string(text(t, r)))
	r.WallS, r.CPUS, r.PacketHopsPerCPUS, r.RSSMB = 1.5, 1.25, 9.6e6, 42
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, name+".json", string(b)+"\n")
}

func TestReport_isTheSameForTheSameSeedWhateverJobs(t *testing.T) {
	for _, seeds := range []int{1, 3} {
		one := text(t, run(t, fake(), Options{Seed: 3, Seeds: seeds, Jobs: 1}))
		two := text(t, run(t, fake(), Options{Seed: 3, Seeds: seeds, Jobs: 2}))
		other := text(t, run(t, fake(), Options{Seed: 4, Seeds: seeds, Jobs: 1}))
		if !bytes.Equal(one, two) {
			t.Errorf("-j 1:\n%s\n-j 2:\n%s", one, two)
		}
		_, one, _ = bytes.Cut(one, []byte("\n\n"))
		_, other, _ = bytes.Cut(other, []byte("\n\n"))
		if bytes.Equal(one, other) {
			t.Error("the seed changes nothing")
		}
	}
}

func TestRun_measures(t *testing.T) {
	const size = 64 << 20
	e := fake()
	inner := e.Run
	e.Run = func(ctx context.Context, o Options) (*Outcome, error) {
		b := make([]byte, size)
		for i := range b { // memory that is written to is resident; and time passes
			b[i] = byte(i)
		}
		out, err := inner(ctx, o)
		runtime.KeepAlive(b)
		return out, err
	}
	r := run(t, e, Options{})
	if r.WallS <= 0 || r.PacketHops != 12_000_000 {
		t.Errorf("%+v", r)
	}
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell the rest")
	}
	if r.CPUS <= 0 || math.Abs(r.PacketHopsPerCPUS*r.CPUS-12e6) > 1 || r.RSSMB < size/1e6 {
		t.Errorf("%v s CPU, %v a second, %v MB", r.CPUS, r.PacketHopsPerCPUS, r.RSSMB)
	}
	// What the one before had is not the next one's.
	if after := run(t, fake(), Options{}); !after.PeakOfProcess && after.RSSMB > r.RSSMB-size/2e6 {
		t.Errorf("%v MB with 64 MB, %v after it", r.RSSMB, after.RSSMB)
	}
}

func TestRun_errorsNameExperimentAndRow(t *testing.T) {
	boom := errors.New("boom")
	if _, err := Run(t.Context(), failing("x-f1", boom), Options{}); !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "x-f1: ") {
		t.Errorf("%v", err)
	}
	for _, e := range []struct {
		name, want string
		Experiment
	}{
		{"no rows", "no rows", of()},
		{"no number", `row "DRB", µs`, of(Info("DRB", "µs", math.NaN()))},
		{"infinite", `row "DRB", µs`, of(Within("DRB", "µs", 1, math.Inf(1), 10))},
		{"paper's is none", `row "DRB", µs`, of(Within("DRB", "µs", math.NaN(), 1, 10))},
		{"nothing to judge", "verdict", of(Info("DRB", "µs", 1))},
	} {
		if _, err := Run(t.Context(), e.Experiment, Options{}); err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

func TestRun_verdictIsTheRowsUnlessGiven(t *testing.T) {
	if r := run(t, of(Within("", "", 1, 1, 1)), Options{Seeds: EnoughSeeds}); r.Verdict != Agrees {
		t.Errorf("%s", r.Verdict)
	}
	e := of(Info("", "", 1))
	e.Judge = func([]Row) (Verdict, string) { return Disagrees, "" }
	if r := run(t, e, Options{}); r.Verdict != Disagrees || r.Because != "we have not found out why" {
		t.Errorf("%s, %s", r.Verdict, r.Because)
	}
	if r := run(t, e, Options{Quick: true}); r.Because != "made smaller" {
		t.Errorf("quick: %s", r.Because)
	}
	if r := run(t, fake(), Options{}); r.Because != "the fabric is not there" {
		t.Errorf("given: %s", r.Because)
	}
}
