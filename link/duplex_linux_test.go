package link

import "testing"

// TestDuplex_packetSocketInTUNOut is the gateway's device: what the uplink
// receives, and what is to be routed out by the kernel.
func TestDuplex_packetSocketInTUNOut(t *testing.T) {
	c := newCable(t)
	d := NewDuplex(c.openNear(t, PacketConfig{}), behind(t, TUNConfig{Offload: true}))
	defer d.Close()
	far := c.openFar(t, PacketConfig{Gateway: near4})
	if d.MaxSuper() != MaxSuperLen {
		t.Errorf("MaxSuper is %d", d.MaxSuper())
	}
	for _, f := range flows(behind4, far4, behind6, far6) {
		transfer(t, f, d, far, sizesTo(f.maxPayload(), f.mss, 2999), 8, 3)
	}
	for _, f := range flows(far4, near4, far6, near6) {
		if f.proto != 6 { // the kernel's answers to TCP would go to a socket that nobody reads
			transfer(t, f, far, d, sizesTo(f.maxPayload(), f.mss, 2999), 8, 3)
		}
	}
}
