package prober

import (
	"fmt"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/liveness"
	"weft/topology"
)

// shared is what several Probers of one host have delivered.
type shared struct {
	mu       sync.Mutex
	carriage map[encap.Carrier]*liveness.Carriage
}

func (s *shared) of(c encap.Carrier) *liveness.Carriage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.carriage[c]
}

func openBeside(t *testing.T, l *lab.Lab, n topology.Node, s *shared, c encap.Carrier, idle bool) *Prober {
	t.Helper()
	var p *Prober
	err := l.Do(n.ID, func() (err error) {
		p, err = Open(Config{Interface: "p0", Address: n.Addr, Topology: l.Config.Topology, Seed: 7 + uint64(n.ID),
			Carrier: c, Gateway: gateway(l.Config.Topology, n.ID), Beside: true, Idle: idle,
			Deliver: func(_ *topology.Topology, carriage *liveness.Carriage) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.carriage[c] = carriage
			}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Two Probers of one host, for two carriers, prove both; neither takes the other's
// probes. On links of a smaller MTU, whose kernel says so or does not, both find how
// long packets may be.
func TestProber_sideBySide(t *testing.T) {
	slowtest.System(t)
	l := newLab(t)
	n, err := l.Config.Topology.Lookup("h0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Config.Topology.Lookup("e3.1")
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{carriage: make(map[encap.Carrier]*liveness.Carriage)}
	probers := map[encap.Carrier]*Prober{
		encap.CarrierIPIP: openBeside(t, l, n, s, encap.CarrierIPIP, false),
		encap.CarrierSRv6: openBeside(t, l, n, s, encap.CarrierSRv6, true),
	}
	proved := func(mtu int) {
		t.Helper()
		for c, p := range probers {
			eventually(t, func() (string, bool) {
				carriage := s.of(c)
				return fmt.Sprintf("%v: plain %v, MTU %d: %q, %+v", c, carriage.Plain(far.ID), carriage.MTU(far.ID), carriage.Why(far.ID), p.Stats()),
					carriage != nil && !carriage.Plain(far.ID) && carriage.MTU(far.ID) == mtu-c.Overhead()
			})
		}
	}
	proved(1500)
	for c, p := range probers {
		if st := p.Stats(); st.Watcher.Unknown != 0 || st.Unsent != 0 || st.Watcher.FullAnswered == 0 {
			t.Errorf("%v: %+v", c, st)
		}
	}
	edge, err := l.Config.Topology.Lookup("e0.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Do(edge.ID, func() error { return setMTU(l.Config.Topology, edge.ID, 1400) }); err != nil {
		t.Fatal(err)
	}
	proved(1400)
}

// setMTU is for the upward links of a switch, in its namespace.
func setMTU(t *topology.Topology, id topology.NodeID, mtu int) error {
	for i, p := range t.Ports(id) {
		if !p.Up {
			continue
		}
		dev, err := netlink.LinkByName(fmt.Sprintf("p%d", i))
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(dev, mtu); err != nil {
			return err
		}
	}
	return nil
}
