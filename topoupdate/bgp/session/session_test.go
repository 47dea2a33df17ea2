package session

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"weft/topology/graph"
	route "weft/topoupdate/bgp"
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
	if missing, silent := s.Missing(); len(missing) != 1 || len(silent) != 1 {
		t.Errorf("missing %v, of which silent %v", missing, silent)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A path with a set or of a confederation says nothing of links. The rate is in Mbit/s.
func TestRouteOf(t *testing.T) {
	part := func(kind uint8, as ...uint32) bgp.AsPathParamInterface { return bgp.NewAs4PathParam(kind, as) }
	seq := part(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, 65101, 65001)
	of := func(parts ...bgp.AsPathParamInterface) route.Route {
		hop, _ := bgp.NewPathAttributeNextHop(netip.MustParseAddr("192.168.1.1"))
		return routeOf([]bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), bgp.NewPathAttributeAsPath(parts), hop,
			bgp.NewPathAttributeExtendedCommunities([]bgp.ExtendedCommunityInterface{bgp.NewLinkBandwidthExtended(65101, 1.25e9)})})
	}
	if got := of(seq); !slices.Equal(got.ASPath, []uint32{65101, 65001}) || got.Merged || got.Rate != 10000 || got.NextHop != netip.MustParseAddr("192.168.1.1") {
		t.Errorf("%+v", got)
	}
	for _, kind := range []uint8{bgp.BGP_ASPATH_ATTR_TYPE_SET, bgp.BGP_ASPATH_ATTR_TYPE_CONFED_SEQ, bgp.BGP_ASPATH_ATTR_TYPE_CONFED_SET} {
		if got := of(seq, part(kind, 65102, 65103)); !got.Merged {
			t.Errorf("of a segment of type %d %+v", kind, got)
		}
	}
}

// The community says bytes per second; what is no rate is none.
func TestRateOf(t *testing.T) {
	inf := float32(math.Inf(1))
	for bytes, want := range map[float32]float64{0: 0, -1: 0, inf: 0, 125000: 1, 5e9: 40000, 1.25e15: 0, 187500: 1.5, float32(25600) * 125000: 25600} {
		if got := rateOf(bytes); got != want {
			t.Errorf("%v bytes/s are %v Mbit/s, want %v", bytes, got, want)
		}
	}
	if got := rateOf(float32(math.NaN())); got != 0 {
		t.Errorf("of NaN %v", got)
	}
}

// Whatever the attributes of an update are, a graph can be made of what a Table takes of it.
func FuzzRouteOf(f *testing.F) {
	add := func(a bgp.PathAttributeInterface) {
		b, err := a.Serialize()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{24, 10, 0, 0})
	}
	add(bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{65101, 65001, 65102})}))
	add(bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SET, []uint32{65101})}))
	add(bgp.NewPathAttributeExtendedCommunities([]bgp.ExtendedCommunityInterface{bgp.NewLinkBandwidthExtended(1, 1e9)}))
	f.Fuzz(func(t *testing.T, attributes, prefix []byte) {
		var attrs []bgp.PathAttributeInterface
		for len(attributes) > 2 {
			a, err := bgp.GetPathAttribute(attributes)
			if err != nil || a.DecodeFromBytes(attributes) != nil || a.Len() <= 0 || a.Len() > len(attributes) {
				break
			}
			attrs = append(attrs, a)
			attributes = attributes[a.Len():]
		}
		leaf := netip.MustParseAddr("192.168.1.1")
		tab := route.NewTable(route.Config{AS: 1, Neighbors: map[netip.Addr]uint32{leaf: 65101}, SIDBlock: netip.MustParsePrefix("fcbb:bbbb::/32")})
		for id := range uint32(2) {
			nlri, err := bgp.NLRIFromSlice(bgp.RF_IPv4_UC, prefix)
			if err != nil {
				return
			}
			k, ok := keyOf(&apiutil.Path{Nlri: nlri, PeerAddress: leaf, RemoteID: id})
			if ok {
				tab.Set(k, routeOf(attrs))
			}
		}
		tab.Set(route.Key{Neighbor: leaf, Prefix: netip.MustParsePrefix("192.168.1.0/24")}, route.Route{ASPath: []uint32{65101}})
		spec, _ := tab.Spec(route.Host{Name: "h", Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.2")}})
		if _, err := graph.New(spec); err != nil {
			t.Fatal(err)
		}
	})
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
