package topology

import (
	"fmt"
	"reflect"
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

// Whatever the order, a topology says of itself what there is to know, and no
// more.
func TestParse_isCanonical(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"fat-tree:k=04", "fat-tree:k=4"},
		{"fat-tree:hosts=4,k=4", "fat-tree:k=4,hosts=4"},
		{"fat-tree:k=4,hosts=2", "fat-tree:k=4"},
		{"leaf-spine:hosts=8,spines=3,leaves=4", "leaf-spine:leaves=4,spines=3,hosts=8"},
		{"vl2:d2=4,d1=2,d0=2", "vl2:d0=2,d1=2,d2=4"},
		{"vl2:d0=2,d1=2,d2=4,hosts=20", "vl2:d0=2,d1=2,d2=4"},
		{"vl2:d0=2,d1=2,d2=4,hosts=3", "vl2:d0=2,d1=2,d2=4,hosts=3"},
	} {
		top, err := Parse(c.spec)
		if err != nil || top.String() != c.want {
			t.Errorf("Parse(%q) = %v, %v; want %s", c.spec, top, err, c.want)
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
		{"fat-tree:k=4,hosts=0", []string{"hosts=0", "at least 1"}},
		{"fat-tree:k=4,hosts=126", []string{"hosts=126", "1 to 125"}},
		{"fat-tree:hosts=4", []string{"k is missing", "fat-tree:k=4"}},
		{"fat-tree:k=4,spines=4", []string{`"spines"`, "k, hosts", "host-rate"}},
		{"leaf-spine:leaves=4,spines=4", []string{"hosts is missing", "leaf-spine:leaves=4,spines=4,hosts=8"}},
		{"leaf-spine:leaves=0,spines=4,hosts=8", []string{"leaves=0", "1 to"}},
		{"leaf-spine:leaves=4,spines=-1,hosts=8", []string{"spines=-1", "1 to"}},
		{"leaf-spine:leaves=4,spines=1025,hosts=8", []string{"1025 paths", "1024"}},
		{"leaf-spine:leaves=4,spines=4,hosts=0", []string{"hosts=0", "1 to 125"}},
		{"leaf-spine:leaves=65281,spines=1,hosts=1", []string{"65281 edge switches", "65280"}},
		{"leaf-spine:leaves=65024,spines=257,hosts=1", []string{"links", "1048576"}},
		{"vl2:d0=2,d1=3,d2=4", []string{"d1=3", "even"}},
		{"vl2:d0=2,d1=4,d2=5", []string{"d2=5", "multiple of d0=2"}},
		{"vl2:d0=2,d1=4", []string{"d2 is missing", "vl2:d0=2,d1=4,d2=4"}},
		{"vl2:d0=0,d1=4,d2=4", []string{"d0=0", "1 to"}},
		{"vl2:d0=13,d1=2,d2=13", []string{"hosts=130", "125"}},
		{"vl2:d0=256,d1=2,d2=256,hosts=1", []string{"d0=256", "255"}},
		{"vl2:d0=1,d1=512,d2=1,hosts=1", []string{"d1=512", "510"}},
		{"vl2:d0=16,d1=130,d2=16,hosts=1", []string{"1040 paths", "1024"}},
		{"vl2:d0=1,d1=4,d2=99999", []string{"d2=99999", "1 to 65536"}},
		{"vl2:d0=1,d1=510,d2=256,hosts=1", []string{"65280 edge switches", "65024"}},
		{"fat-tree:K=4", []string{`"K"`}},
		{"fat-tree:k=4,", []string{`""`}},
		{"fattree:k=4", []string{`"fattree"`, "fat-tree:k=K", "leaf-spine:leaves=LEAVES,spines=SPINES,hosts=HOSTS", "vl2:d0=D0,d1=D1,d2=D2"}},
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
	for _, s := range []string{"fat-tree:k=4", "fat-tree:k=+4", "fat-tree:k=04", "fat-tree:k=4=4", "fat-tree:k==4",
		"leaf-spine:leaves=4,spines=4,hosts=8", "vl2:d0=2,d1=4,d2=4,hosts=3", "fat-tree:k=4,host-rate=1e3,fabric-rate=10,e0.0-a0.2=40,3.0-a0.2=1"} {
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
		if err != nil || !reflect.DeepEqual(again, top) {
			t.Fatalf("Parse(%q) is %v, which Parse reads as %v, %v", s, top, again, err)
		}
	})
}
