package hostprog

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// counters calls do for each counter of a structure, and of those in it, with its number.
func counters(v reflect.Value, do func(i int, name string, v reflect.Value)) {
	n := 0
	var walk func(v reflect.Value, name string)
	walk = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Uint64:
			do(n, name, v)
			n++
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), v.Type().Field(i).Name)
			}
		}
	}
	walk(v, "")
}

// Every counter of the program that is replaced is in the sum.
func TestSprayStats_plusLosesNothing(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var replaced SprayStats
	counters(reflect.ValueOf(&replaced).Elem(), func(i int, _ string, v reflect.Value) { v.SetUint(uint64(100 + i)) })
	replaced.Bounces = []BounceStats{{a, "eth1", Traffic{1, 2}, 3}, {a, "eth2", Traffic{4, 5}, 6}, {b, "eth1", Traffic{7, 8}, 9}}
	now := SprayStats{Seen: 1, Bounces: []BounceStats{{a, "eth2", Traffic{10, 20}, 30}, {a, "eth3", Traffic{1, 1}, 1}}}
	before := slices.Clone(now.Bounces)
	sum := now.Plus(replaced)
	counters(reflect.ValueOf(sum), func(i int, name string, v reflect.Value) {
		want := uint64(100 + i)
		if name == "Seen" {
			want++
		}
		if v.Uint() != want {
			t.Errorf("%s is %d, want %d", name, v.Uint(), want)
		}
	})
	if want := []BounceStats{{a, "eth2", Traffic{14, 25}, 36}, {a, "eth3", Traffic{1, 1}, 1}}; !slices.Equal(sum.Bounces, want) || !slices.Equal(now.Bounces, before) {
		t.Errorf("%v, want %v; the argument is %v", sum.Bounces, want, now.Bounces)
	}
}
