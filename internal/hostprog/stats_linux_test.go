package hostprog

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// Every counter of the program that is replaced is in the sum.
func TestSprayStats_plusLosesNothing(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var replaced SprayStats
	v := reflect.ValueOf(&replaced).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Uint64 {
			v.Field(i).SetUint(uint64(100 + i))
		}
	}
	replaced.Bounces = []BounceStats{{a, "eth1", Traffic{1, 2}, 3}, {a, "eth2", Traffic{4, 5}, 6}, {b, "eth1", Traffic{7, 8}, 9}}
	now := SprayStats{Seen: 1, Bounces: []BounceStats{{a, "eth2", Traffic{10, 20}, 30}, {a, "eth3", Traffic{1, 1}, 1}}}
	before := slices.Clone(now.Bounces)
	sum := now.Plus(replaced)
	v = reflect.ValueOf(sum)
	for i := range v.NumField() {
		want := uint64(100 + i)
		if v.Type().Field(i).Name == "Seen" {
			want++
		}
		if v.Field(i).Kind() == reflect.Uint64 && v.Field(i).Uint() != want {
			t.Errorf("%s is %d, want %d", v.Type().Field(i).Name, v.Field(i).Uint(), want)
		}
	}
	if want := []BounceStats{{a, "eth2", Traffic{14, 25}, 36}, {a, "eth3", Traffic{1, 1}, 1}}; !slices.Equal(sum.Bounces, want) || !slices.Equal(now.Bounces, before) {
		t.Errorf("%v, want %v; the argument is %v", sum.Bounces, want, now.Bounces)
	}
}
