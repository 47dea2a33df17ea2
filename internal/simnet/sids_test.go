package simnet

import (
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/topology"
)

// What is for a SID goes to its switch, which takes out what the SID says and nothing else.
func TestInject_operatorsSIDs(t *testing.T) {
	topo := fatTree(t, 4)
	src, far, core := host(t, topo, "h0.0.2"), host(t, topo, "h3.1.3"), host(t, topo, "3.2")
	sid4, sid6, unknown := netip.MustParseAddr("fcbb:bbbb:1:fe04::"), netip.MustParseAddr("fcbb:bbbb:1:fe06::"), netip.MustParseAddr("fcbb:bbbb:1:fe05::")
	inner4, inner6 := udp(src.Addr, far.Addr, 1, 2, 100), udp6(src.Addr, far.Addr, 100)
	for _, c := range []struct {
		inner      []byte
		sid4, sid6 netip.Addr
		why        Cause // that it is dropped; NumCauses: it is not
	}{
		{inner4, sid4, sid6, NumCauses}, {inner6, sid4, sid6, NumCauses},
		{inner4, sid6, sid4, Malformed}, {inner6, sid6, sid4, Malformed},
		{inner4, unknown, sid6, NoRoute},
	} {
		n := network(t, topo, Config{SIDs: map[netip.Addr]SID{sid4: {Switch: core.ID}, sid6: {Switch: core.ID, Inner6: true}}})
		o, err := encap.NewSIDOuter(topology.Addr6(src.Addr), c.sid4, c.sid6)
		n.Inject(src.ID, wrapped(t, o, err, c.inner), 0)
		got := drain(n)
		if c.why != NumCauses {
			if len(got) != 0 || n.Stats().Dropped[c.why] != 1 {
				t.Errorf("%v: %d packets arrive: %+v", c.why, len(got), n.Stats())
			}
			continue
		}
		if len(got) != 1 || got[0].host != far.ID || len(got[0].packet) != len(c.inner) {
			t.Errorf("%+v, %+v", got, n.Stats())
		}
		if _, down := n.Link(topo.Ports(core.ID)[3].Link); down.Packets != 1 {
			t.Errorf("the way down from the core has had %d packets", down.Packets)
		}
	}
	for _, bad := range []map[netip.Addr]SID{{sid4: {Switch: src.ID}}, {src.Addr: {Switch: core.ID}}, {sid4: {Switch: 999}}} {
		if _, err := New(topo, Config{RateBits: 1, SIDs: bad}); err == nil || !strings.Contains(err.Error(), "simnet: SID") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
