package topology

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse_roundTrip(t *testing.T) {
	for k := MinFatTreeK; k <= MaxFatTreeK; k += 2 {
		spec := fmt.Sprintf("fat-tree:k=%d", k)
		top, err := Parse(spec)
		if err != nil || top.String() != spec || top.NumHosts() != k*k*k/4 {
			t.Errorf("Parse(%q) = %v, %v", spec, top, err)
		}
	}
}

func TestParse_errors(t *testing.T) {
	for _, c := range []struct {
		spec string
		says []string
	}{
		{"fat-tree:k=3", []string{"k=3", "even", "2 to 64"}},
		{"fat-tree:k=0", []string{"k=0", "2 to 64"}},
		{"fat-tree:k=-4", []string{"k=-4", "2 to 64"}},
		{"fat-tree:k=66", []string{"k=66", "2 to 64"}},
		{"fat-tree:k=1000000000", []string{"k=1000000000", "2 to 64"}},
		{"fat-tree:k=99999999999999999999", []string{"k=99999999999999999999"}},
		{"fat-tree:k=four", []string{"k=four", "whole number"}},
		{"fat-tree:k=4.0", []string{"k=4.0", "whole number"}},
		{"fat-tree:k=", []string{"k has no value", "fat-tree:k=4"}},
		{"fat-tree:k", []string{"k has no value", "fat-tree:k=4"}},
		{"fat-tree:", []string{"fat-tree:k=4"}},
		{"fat-tree", []string{"fat-tree:k=4"}},
		{"fat-tree:k=4,k=4", []string{"k given twice"}},
		{"fat-tree:k=4,hosts=2", []string{`"hosts"`, "k"}},
		{"fat-tree:K=4", []string{`"K"`}},
		{"fat-tree:k=4,", []string{`""`}},
		{"fattree:k=4", []string{`"fattree"`, "fat-tree:k=K"}},
		{"", []string{`""`, "fat-tree:k=K"}},
	} {
		top, err := Parse(c.spec)
		if err == nil {
			t.Errorf("Parse(%q) = %v", c.spec, top)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("Parse(%q): %v; does not say %q", c.spec, err, s)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"fat-tree:k=4", "fat-tree:k=+4", "fat-tree:k=04", "fat-tree:k=4=4", "fat-tree:k==4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		top, err := Parse(s)
		if (top == nil) == (err == nil) {
			t.Fatalf("Parse(%q) = %v, %v", s, top, err)
		}
		if err != nil {
			return
		}
		again, err := Parse(top.String())
		if err != nil || *again != *top {
			t.Fatalf("Parse(%q) is %v, which Parse reads as %v, %v", s, top, again, err)
		}
	})
}
