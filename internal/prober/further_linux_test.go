package prober

import (
	"net/netip"
	"testing"
)

// What a host forwards adds a bounded number of hosts to those that it has connections with.
func TestFurther(t *testing.T) {
	known := make(map[netip.Addr]bool)
	var list []netip.Addr
	a := netip.MustParseAddr("10.0.0.2")
	for range 300 {
		list = append(list, a)
		known[a] = len(list) <= 100
		a = a.Next()
	}
	more := further(known, list)
	if len(more) != mostFurther || more[0] != list[100] {
		t.Errorf("%d more, from %v on; want %d from %v on", len(more), more[0], mostFurther, list[100])
	}
	if more = further(known, list[:110]); len(more) != 10 {
		t.Errorf("%d more, want 10", len(more))
	}
}
