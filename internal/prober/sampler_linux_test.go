package prober

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/luopan"
	"weft/topology"
)

// sampled is what a program at the uplink would do: it has flowcells to a host, and
// takes decisions.
type sampled struct {
	*Sampler
	top     *topology.Topology
	mu      sync.Mutex
	to      netip.Addr // of flowcells; the zero Addr: there are none
	decided []int
	valid   time.Duration
	rack    netip.Prefix
}

func (s *sampled) active(f func(netip.Prefix, netip.Addr, uint64)) error {
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()
	if to.IsValid() {
		f(s.top.RackOf(s.edge(to)), to, 1)
	}
	return nil
}

// edge is the edge switch of a host's rack.
func (s *sampled) edge(host netip.Addr) topology.NodeID {
	id, _ := s.top.RackAt(host)
	return id
}

func (s *sampled) decide(rack netip.Prefix, path int, valid time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if valid > 0 {
		s.decided, s.valid, s.rack = append(s.decided, path), valid, rack
	}
	return nil
}

// gateway is the address of a host's edge switch.
func gateway(top *topology.Topology, host topology.NodeID) netip.Addr {
	return top.Node(top.EdgeOf(host)).Addr
}

func sample(t *testing.T, l *lab.Lab, name string, carrier encap.Carrier) *sampled {
	t.Helper()
	n, err := l.Config.Topology.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s := &sampled{top: l.Config.Topology}
	if err := l.Do(n.ID, func() (err error) {
		s.Sampler, err = OpenSampler(SamplerConfig{Interface: "p0", Gateway: gateway(s.top, n.ID), Address: n.Addr, Topology: l.Config.Topology,
			Carrier: carrier, Seed: 1 + uint64(n.ID), Active: s.active, Decide: s.decide})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Samples take their paths and come back, by either carrier, with what meters
// write; decisions follow; what is dead is not decided on; and silence ends it.
func TestSampler_decides(t *testing.T) {
	slowtest.System(t)
	if err := lab.CanBuild(); err != nil {
		t.Skipf("builds a lab of network namespaces: %v", err)
	}
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Hold(context.Background(), lab.Config{Name: kerneltest.LabName("m"), Topology: top, RateMbit: 100, SRv6: true, Meter: &lab.Meter{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		t.Run(carrier.String(), func(t *testing.T) {
			a, b := sample(t, l, "h0.0.2", carrier), sample(t, l, "h3.1.3", carrier)
			dst := netip.MustParseAddr("10.3.1.3")
			a.mu.Lock()
			a.to = dst
			a.mu.Unlock()
			eventually(t, func() (string, bool) {
				here, there := a.Stats(), b.Stats() // before the lock, which decide takes with the Sampler's
				a.mu.Lock()
				defer a.mu.Unlock()
				seen := slices.Compact(slices.Sorted(slices.Values(a.decided)))
				return fmt.Sprintf("decided on %v: %+v, there %+v", seen, here, there),
					slices.Equal(seen, []int{0, 1, 2, 3}) && a.rack == top.RackOf(a.edge(dst)) && a.valid > 0
			})
			if s := b.Stats(); s.Answered == 0 || s.Refused > 0 || s.Unsent > 0 {
				t.Errorf("there %+v", s)
			}
			eventually(t, func() (string, bool) {
				d := a.Destinations()
				return fmt.Sprintf("%+v", d), len(d) == 1 && d[0].RTT > 0 && d[0].Destination == uint32(a.edge(dst)) &&
					len(d[0].Samples) > 0 && d[0].Metric == luopan.QueueBytes && d[0].Samples[0].Meters == 5 // switches on the way
			})

			link, err := top.LinkByName("a0.2-c1.1") // of path 0
			if err != nil {
				t.Fatal(err)
			}
			a.SetTopology(top.Without(link.ID))
			a.mu.Lock()
			a.decided = nil
			a.mu.Unlock()
			eventually(t, func() (string, bool) {
				a.mu.Lock()
				defer a.mu.Unlock()
				return fmt.Sprintf("decided on %v", a.decided), len(a.decided) >= 10
			})
			a.mu.Lock()
			if slices.Contains(a.decided, 0) {
				t.Errorf("decided on %v, though 0 is dead", a.decided)
			}
			a.to = netip.Addr{}
			a.mu.Unlock()
			eventually(t, func() (string, bool) {
				return fmt.Sprintf("%+v", a.Stats()), a.Stats().Table.Destinations == 0
			})
		})
	}
}

func TestOpenSampler_refuses(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	good := SamplerConfig{Interface: "none", Gateway: netip.MustParseAddr("10.0.0.1"), Address: netip.MustParseAddr("10.0.0.2"), Topology: top}
	for says, change := range map[string]func(*SamplerConfig){
		"Topology is missing":  func(c *SamplerConfig) { c.Topology = nil },
		"Gateway is missing":   func(c *SamplerConfig) { c.Gateway = netip.Addr{} },
		"Decide is missing":    func(c *SamplerConfig) { c.Active = (&sampled{}).active },
		"Carrier mpls":         func(c *SamplerConfig) { c.Carrier = encap.CarrierMPLS },
		"Address 10.0.0.1":     func(c *SamplerConfig) { c.Address = c.Gateway },
		"Samples is -1":        func(c *SamplerConfig) { c.Samples = -1 },
		"sample paths: packet": func(*SamplerConfig) {},
	} {
		c := good
		change(&c)
		if s, err := OpenSampler(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, %v; want %q", s, err, says)
		}
	}
}
