package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a bench that was killed has left is removed.
func TestFresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab-faults")
	for range 2 {
		if err := fresh(dir); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "h0.0.2.log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A switch whose daemon does not run is an error, not a panic.
func TestAgentKilled_none(t *testing.T) {
	if _, err := agentKilled("e0.0")(&Bed{}); err == nil || !strings.Contains(err.Error(), "e0.0") {
		t.Error(err)
	}
}

// What the doctor finds each time before anything is broken is learned, and told.
func TestInBoth(t *testing.T) {
	found, err := wrong(`[{"check":"a","cause":"x"},{"check":"a","cause":"x"},{"node":"n","check":"a","cause":"x"},{"check":"b","ok":true},{"check":"c","cause":"2 %"}]`)
	if err != nil {
		t.Fatal(err)
	}
	later, err := wrong(`[{"check":"c","cause":"3 %"},{"node":"n","check":"a","cause":"x"},{"check":"a","cause":"x"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(inBoth(found, later)); got != "[a: x n: a: x]" {
		t.Error(got)
	}
	var b bytes.Buffer
	bed := &Bed{options: Options{Notes: &b}, known: map[string][]string{"n": {"1"}, string(Fabric): {"2"}}}
	if got := fmt.Sprint(bed.knownTo(Fault{}, "n"), bed.knownTo(Fault{Fabric: true}, "n")); got != "[1] [1 2]" {
		t.Error(got)
	}
	if bed.note("at %s: %s", "n", "1"); b.String() != "at n: 1\n" {
		t.Errorf("%q", b.String())
	}
}

// Each fault at a place says where, as the table's words alone are too wide.
func TestAll_places(t *testing.T) {
	for _, list := range [][]Fault{ofCables, ofSwitches} {
		for _, f := range list {
			if len(f.At) == 0 && f.Name != "duplicate-address" { // which has the address
				t.Errorf("%s: no place is to be named", f.Name)
			}
		}
	}
	for _, f := range All() {
		for _, words := range f.Cause {
			if strings.Join(words, "") == "" {
				t.Errorf("%s: anything names it", f.Name)
			}
		}
		for _, at := range f.At {
			if got := placesIn(at); len(got) != 1 || got[0] != at {
				t.Errorf("%s: %q is no place", f.Name, at)
			}
		}
	}
}
