package stack_test

import (
	"testing"
	"time"

	"weft/encap"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/internal/slowtest"
	"weft/stack"
)

// sixteenFlows is how long a permutation of the hosts of a fat-tree takes, each with 1 MB to
// one in the next pod, and what the receivers have seen.
func sixteenFlows(t *testing.T, policy string, carrier encap.Carrier, seed uint64, six bool) (took time.Duration, ingress stack.Stats) {
	t.Helper()
	w := world.New(world.Config{Topology: "fat-tree:k=4", Seed: seed, IPv6: six,
		Links: simnet.Config{RateBits: 1e9, Delay: 5 * time.Microsecond, QueueBytes: 150_000},
		Hosts: func(_ string, c *stack.Config) { c.Policy, c.Carrier = policy, carrier },
	})
	defer w.Close()
	var hosts []string
	for h := range w.Topology().Hosts() {
		hosts = append(hosts, h.Name)
	}
	var flows []*world.Flow
	for i, from := range hosts {
		flows = append(flows, w.Flow(from, hosts[(i+4)%len(hosts)], 1<<20))
	}
	if err := w.Run(20 * time.Second); err != nil {
		t.Fatalf("%s, %v, IPv6: %v: %v", policy, carrier, six, err)
	}
	for _, f := range flows {
		took = max(took, f.Time())
	}
	for _, name := range hosts {
		s := w.Host(name).Stats()
		ingress.Resequencer.DeliveredOutOfOrder += s.Resequencer.DeliveredOutOfOrder
		ingress.Resequencer.ArrivedOutOfOrder += s.Resequencer.ArrivedOutOfOrder
		ingress.Resequencer.FlowsNumbered += s.Resequencer.FlowsNumbered
		ingress.Resequencer.FlowsUnnumbered += s.Resequencer.FlowsUnnumbered
		ingress.Egress.Encapsulated += s.Egress.Encapsulated
		ingress.Egress.Plain += s.Egress.Plain
	}
	return took, ingress
}

// IPv6 is as good as IPv4: a whole fabric under load takes as long, but for the 20 bytes more
// of each header and for chance, and as much comes out of order. A run with all tests averages
// over more seeds and allows less.
func TestHost_spraysIPv6AsIPv4(t *testing.T) {
	inShort(t)
	seeds, more := uint64(6), 0.05
	if slowtest.Small() {
		seeds, more = 1, 0.2
	}
	for _, c := range []struct {
		policy  string
		carrier encap.Carrier
	}{
		{"presto", encap.CarrierIPIP}, {"presto", encap.CarrierSRv6}, {"drb", encap.CarrierIPIP},
	} {
		var four, six time.Duration
		var out4, out6 uint64
		for seed := range seeds {
			t4, s4 := sixteenFlows(t, c.policy, c.carrier, seed, false)
			t6, s6 := sixteenFlows(t, c.policy, c.carrier, seed, true)
			four, six = four+t4, six+t6
			out4, out6 = out4+s4.Resequencer.DeliveredOutOfOrder, out6+s6.Resequencer.DeliveredOutOfOrder
			if s6.Egress.Encapsulated < 10_000 || s6.Egress.Plain > 0 {
				t.Errorf("seed %d, %s, %v: %+v", seed, c.policy, c.carrier, s6.Egress)
			}
			if r := s6.Resequencer; c.policy == "presto" && (r.FlowsNumbered < 16 || r.FlowsUnnumbered > s4.Resequencer.FlowsUnnumbered) {
				t.Errorf("seed %d, %v: %+v, by IPv4 %+v", seed, c.carrier, r, s4.Resequencer)
			}
		}
		t.Logf("%s, %v: %v, by IPv4 %v; delivered out of order %d, by IPv4 %d", c.policy, c.carrier, six, four, out6, out4)
		if float64(six) > float64(four)*(1+more) {
			t.Errorf("%s, %v: %v, by IPv4 %v", c.policy, c.carrier, six, four)
		}
	}
}
