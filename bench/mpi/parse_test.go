package mpi

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	got, err := parse("0.250000\n1.500000\n", 2)
	if want := []time.Duration{250 * time.Millisecond, 1500 * time.Millisecond}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "0.25\n", "0.25\n1.5", "0.25\n1.5\n2\n", "0.25\nNaN\n", "0.25\n-1\n", "0.25\n1e300\n", "0.25\nAbort\n"} {
		if got, err := parse(bad, 2); err == nil || !strings.HasPrefix(err.Error(), "the ranks print ") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0.250000\n1.500000\n")
	f.Add("0.25\nInf\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse(text, 2)
		if err == nil && (len(got) != 2 || slices.Min(got) < 0) {
			t.Errorf("%q: %v", text, got)
		}
	})
}
