package membership

import (
	"net/netip"
	"testing"

	"weft/encap"
	"weft/mesh"
)

// A host that comes while a former registration is in the directory cannot know better, however often it
// is given its peers. One that has known the host itself has been deceived.
func TestForged_ofNewcomersIsNoFault(t *testing.T) {
	b := &bed{brought: map[string]uint8{"a": 3}}
	b.foreign.Usurped = make([]Usurpation, ways)
	h := &host{b: b, name: "b", known: make(map[string]bool)}
	a := func(generation uint8) *mesh.Peer {
		return &mesh.Peer{Name: "a", Endpoint: netip.MustParseAddrPort("127.0.0.1:1"), Key: &encap.UDPKey{ID: generation << 4}}
	}
	h.meets(a(3))
	h.meets(a(3))
	if b.foreign.Taken != 0 {
		t.Errorf("a newcomer that meets a former registration is counted %d times", b.foreign.Taken)
	}
	h.meets(a(4))
	h.meets(a(3))
	if b.foreign.Taken != 1 || b.foreign.Usurped[replayed].Taken != 1 {
		t.Errorf("a host that goes back to a former registration is counted %d times, want once", b.foreign.Taken)
	}
}
