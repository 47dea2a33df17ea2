package dataplane

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/link"
)

// A Gateway says what it has seen of the kernel's TCP: whom it goes to, and by which paths
// segments went and were lost.
func TestGateway_observes(t *testing.T) {
	kernel, programs := superPair(1500)
	g, err := NewGateway(GatewayConfig{Address: addrA, Topology: fatTree, Programs: programs, Policy: "drb", Evidence: true, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	far, near := fatTree.Node(15), fatTree.Node(4)
	write := func(dst netip.Addr, seq uint32, payload int) {
		b := dataPacket(1, payload)
		to := dst.As4()
		copy(b[16:], to[:])
		binary.BigEndian.PutUint32(b[24:], seq)
		buf := append(make([]byte, link.SuperHeadroom), fixed(b)...)
		if _, err := kernel.WriteSuper([][]byte{buf}, link.SuperHeadroom); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(40) {
		write(far.Addr, 1+1000*i, 1000)
	}
	write(far.Addr, 1+1000*20, 1000) // what was lost
	write(near.Addr, 1, 0)
	w := newWitness()
	eventually(t, "all of it has been sent", func() bool { return g.Stats().Egress.Encapsulated == 42 })
	g.Observe(w, time.Second)
	sent, lost := 0, 0
	for _, n := range w.sentBy {
		sent += n
	}
	for _, n := range w.lostBy {
		lost += n
	}
	slices.SortFunc(w.hosts, netip.Addr.Compare)
	if sent != 41 || lost != 1 || !slices.Equal(w.hosts, []netip.Addr{near.Addr, far.Addr}) {
		t.Errorf("%d sent by %v, %d lost by %v; hosts %v", sent, w.sentBy, lost, w.lostBy, w.hosts)
	}
	if s := g.Stats().Evidence; s.Losses != 1 {
		t.Errorf("%+v", s)
	}
}
