package session

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

func TestOpen_refuses(t *testing.T) {
	good := Neighbor{Addr: netip.MustParseAddr("127.0.0.9"), AS: 65101}
	id := netip.MustParseAddr("192.168.1.2")
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{RouterID: id, Neighbors: []Neighbor{good}}, "AS is missing"},
		{Config{AS: 1, Neighbors: []Neighbor{good}}, "RouterID"},
		{Config{AS: 1, RouterID: id}, "Neighbors is empty"},
		{Config{AS: 1, RouterID: id, Neighbors: []Neighbor{{Addr: good.Addr}}}, "both must be given"},
		{Config{AS: 1, RouterID: id, Neighbors: []Neighbor{good, good}}, "given twice"},
	} {
		if _, err := Open(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want one with %q", err, c.want)
		}
	}
}

func TestOpen_nobodyThere(t *testing.T) {
	n := netip.MustParseAddr("127.0.0.9")
	s, err := Open(Config{AS: 4200000001, RouterID: netip.MustParseAddr("192.168.1.2"), Neighbors: []Neighbor{{Addr: n, AS: 65101}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Complete() || len(s.Missing()) != 1 {
		t.Errorf("complete %v, missing %v", s.Complete(), s.Missing())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A path with a set says nothing of links.
func TestASPath(t *testing.T) {
	seq := bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{65101, 65001})
	set := bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SET, []uint32{65102, 65103})
	attrs := func(parts ...bgp.AsPathParamInterface) []bgp.PathAttributeInterface {
		return []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), bgp.NewPathAttributeAsPath(parts)}
	}
	if got := asPath(attrs(seq)); len(got) != 2 || got[1] != 65001 {
		t.Errorf("%v", got)
	}
	if got := asPath(attrs(seq, set)); got != nil {
		t.Errorf("of a set %v", got)
	}
}

func TestFamiliesOf(t *testing.T) {
	if got := familiesOf(nil); len(got) != 1 || got[0] != bgp.RF_IPv4_UC {
		t.Errorf("%v", got)
	}
	caps := []bgp.ParameterCapabilityInterface{bgp.NewCapMultiProtocol(bgp.RF_IPv6_UC), bgp.NewCapMultiProtocol(bgp.RF_EVPN)}
	if got := familiesOf(caps); len(got) != 1 || got[0] != bgp.RF_IPv6_UC {
		t.Errorf("%v", got)
	}
}
