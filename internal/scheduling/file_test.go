package scheduling

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/internal/config"
	"weft/topology"
)

// A host is known by its address of IPv4 and by that of IPv6 that belongs to it.
func TestFile_detectorKnowsBothFamilies(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4,host-rate=1000,fabric-rate=1000,core-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	own := top.Node(1).Addr
	link := File{Share: 0.1}.Detector(top, func(h topology.NodeID) bool { return h == 1 }).Link
	for a, want := range map[netip.Addr]float64{
		own: 1e9, topology.Addr6(own): 1e9, top.Node(2).Addr: 0, topology.Addr6(top.Node(2).Addr): 0,
		netip.MustParseAddr("2001:db8::1"): 0, top.Node(top.EdgeOf(1)).Addr: 0,
	} {
		if got := link(a); got != want {
			t.Errorf("the link of %v has %g bit/s, want %g", a, got, want)
		}
	}
}

func TestFile_ratesAreNumbers(t *testing.T) {
	for rate, good := range map[float64]bool{0: true, 1000: true, -1: false, math.NaN(): false, math.Inf(1): false} {
		f := File{Share: 0.1, Every: time.Second, LinkMbit: rate}
		if err := f.Check(config.Lines{}, nil, "keys", true); (err == nil) != good || !good && !strings.Contains(err.Error(), "link_mbit") {
			t.Errorf("link_mbit %v: %v", rate, err)
		}
	}
}
