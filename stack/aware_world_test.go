package stack_test

import (
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
	"weft/topology"
)

// slowSpine is a leaf-spine in which the link from the first spine to the last
// leaf is four times as slow as all others, of which hosts do not know. It returns
// the part of what a host of the first leaf sends that goes by that spine.
func slowSpine(t *testing.T, policy string, carrier encap.Carrier, meter *simnet.Meter, seed uint64) (part float64, h *stack.Host) {
	t.Helper()
	const spec = "leaf-spine:leaves=3,spines=4,hosts=4"
	plain, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	w := world.New(world.Config{
		Topology: spec + ",host-rate=1000,fabric-rate=1000,a0.0-e0.2=250", Seed: seed,
		Links: simnet.Config{RateBits: 1e9, Delay: 2 * time.Microsecond, QueueBytes: 150_000, Meter: meter},
		Hosts: func(_ string, c *stack.Config) {
			c.Topology, c.Policy, c.Carrier, c.PolicyOptions.LinkRateBits = plain, policy, carrier, 1e9
			c.PolicyOptions.FlowcellBytes = 16 << 10
			c.PolicyOptions.FlowletGap = 100 * time.Microsecond
			c.PolicyOptions.Tau = 500 * time.Microsecond
		},
	})
	t.Cleanup(w.Close)
	for i, from := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		w.Flow(from, []string{"10.0.2.2", "10.0.2.3", "10.0.2.4"}[i], world.Endless)
	}
	until(t, w, 60*time.Millisecond)
	host := w.Host("10.0.0.2")
	slow := plain.Node(must(plain.Lookup("a0.0")).ID).Addr
	total, by := uint64(0), uint64(0)
	for _, p := range host.Stats().Paths {
		total += p.Bytes
		if p.Bounce == slow {
			by = p.Bytes
		}
	}
	return float64(by) / float64(total), host
}

func must(n topology.Node, err error) topology.Node {
	if err != nil {
		panic(err)
	}
	return n
}

// Who looks at congestion sends less into a queue that grows on the other side of
// the fabric than its fair share of a quarter, whatever the switches tell; and says
// by what it has chosen.
func TestHost_avoidsCongestion(t *testing.T) {
	inShort(t)
	for _, c := range []struct {
		policy  string
		carrier encap.Carrier
		meter   *simnet.Meter
		metric  string
		most    float64
	}{
		{"luopan", encap.CarrierIPIP, &simnet.Meter{}, "queue", 0.2},
		{"luopan", encap.CarrierSRv6, &simnet.Meter{}, "queue", 0.2},
		{"luopan", encap.CarrierIPIP, nil, "one-way delay", 0.2},
		{"conga", encap.CarrierIPIP, &simnet.Meter{}, "", 0.2},
		{"conga", encap.CarrierSRv6, &simnet.Meter{}, "", 0.2},
	} {
		seeds := []uint64{13}
		if c.policy == "conga" {
			seeds = []uint64{1, 2, 3, 4, 5} // a few flowlets decide: the parts of single runs lie between 1 and 30 %
		}
		part, h := 0.0, (*stack.Host)(nil)
		for _, seed := range seeds {
			one, host := slowSpine(t, c.policy, c.carrier, c.meter, seed)
			part, h = part+one/float64(len(seeds)), host
		}
		s := h.Stats()
		t.Logf("%s by %v, switches write: %v: %.1f %% by the slow spine; %+v %+v", c.policy, c.carrier, c.meter != nil, 100*part, s.Samples, s.Conga)
		if part > c.most || part == 0 {
			t.Errorf("%s by %v: %.1f %% by the slow spine", c.policy, c.carrier, 100*part)
		}
		know := h.Congestion()
		if len(know) != 1 || know[0].Rack != "e0.2" || know[0].Metric != c.metric {
			t.Fatalf("%s by %v: known is %+v", c.policy, c.carrier, know)
		}
		if c.policy == "conga" {
			known := func(c stack.TagCongestion) bool { return c.Known && len(c.Paths) == 1 && c.Choices > 0 }
			if !slices.ContainsFunc(know[0].Tags, known) || s.Ingress.Marked == 0 {
				t.Errorf("conga: known is %+v, %d packets were marked", know[0].Tags, s.Ingress.Marked)
			}
			continue
		}
		if n := s.Samples; n.Table.Answers < 20 || n.Refused+n.Forged+n.Drops+n.Pathless > 0 {
			t.Errorf("%s by %v: %+v", c.policy, c.carrier, n)
		}
	}
}
