package dataplane

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/link"
	"weft/liveness"
)

// carriageOf is what a Watcher says that hears boomerangs, or does not, and of those
// that are longer than most nothing.
func carriageOf(t *testing.T, home bool, most int) *liveness.Carriage {
	t.Helper()
	w, err := liveness.New(liveness.Config{Topology: fatTree, Self: 0, Address: addrA, MTU: 1500, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for now := time.Duration(0); now < 5*time.Second; now += time.Millisecond {
		w.Tick(now)
		w.Probes(func(p *liveness.Probe) {
			if p.Kind() == encap.Boomerang && home && p.Len()+encap.Overhead <= most {
				w.Answer(p.Append(nil), now)
			}
		})
	}
	return w.Carriage()
}

// A Gateway encapsulates, or does not, as its Carriage says, from one packet to the
// next; what is too long for the paths to a rack it refuses as a router would.
func TestGateway_goesByTheCarriage(t *testing.T) {
	kernel, programs := superPair(1500)
	g, err := NewGateway(GatewayConfig{Address: addrA, Topology: fatTree, Programs: programs, Policy: "drb", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	far, near := fatTree.Node(15).Addr, fatTree.Node(1).Addr
	bufs, sizes := [][]byte{make([]byte, link.SuperHeadroom+2000)}, []int{0}
	send := func(dst netip.Addr, payload int) []byte {
		t.Helper()
		b := dataPacket(1, payload)
		to := dst.As4()
		copy(b[16:], to[:])
		if _, err := kernel.WriteSuper([][]byte{append(make([]byte, link.SuperHeadroom), fixed(b)...)}, link.SuperHeadroom); err != nil {
			t.Fatal(err)
		}
		n, err := kernel.ReadSuper(bufs, sizes, link.SuperHeadroom)
		if n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		return bufs[0][link.SuperHeadroom:][:sizes[0]]
	}
	const ipip, tcp, icmp = 4, 6, 1
	whole, plain, short := carriageOf(t, true, 1500), carriageOf(t, false, 0), carriageOf(t, true, 1400)
	for i, c := range []struct {
		carriage *liveness.Carriage
		dst      netip.Addr
		payload  int
		protocol byte
	}{
		{nil, far, 1000, ipip}, {plain, far, 1000, tcp}, {plain, near, 1000, tcp}, {whole, far, 1000, ipip}, {whole, far, 1440, ipip},
		{short, far, 1000, ipip}, {short, far, 1340, ipip}, {short, far, 1341, icmp}, {short, near, 1440, tcp}, {whole, far, 1341, ipip},
	} {
		g.SetCarriage(c.carriage)
		b := send(c.dst, c.payload)
		if b[9] != c.protocol {
			t.Fatalf("%d: protocol %d, want %d", i, b[9], c.protocol)
		}
		if c.protocol != icmp {
			continue
		}
		if !validIP(b) || b[20] != 3 || b[21] != 4 || binary.BigEndian.Uint16(b[26:]) != 1380 || [4]byte(b[16:]) != addrA.As4() || [4]byte(b[28+16:]) != far.As4() {
			t.Errorf("the error is %x", b)
		}
	}
	if s := g.Stats().Egress; s.Plain != 1 || s.Direct != 2 || s.TooLong != 1 || s.Encapsulated != 6 {
		t.Errorf("%+v", s)
	}
}
