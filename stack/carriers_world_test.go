package stack_test

import (
	"testing"
	"time"

	"weft/encap"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/policy"
	"weft/stack"
)

// carried is a fabric whose hosts use a carrier and a policy, with links of a rate in bit/s.
func carried(t *testing.T, rate int64, topology string, carrier encap.Carrier, policy string, change ...func(*stack.Config)) *world.World {
	t.Helper()
	w := world.New(world.Config{
		Topology: topology, Seed: 7,
		Links: simnet.Config{RateBits: rate, Delay: 2 * time.Microsecond, HostQueueBytes: int(3 * rate / 10_000)},
		Hosts: func(_ string, c *stack.Config) {
			c.Policy, c.Carrier = policy, carrier
			for _, f := range change {
				f(c)
			}
		},
	})
	t.Cleanup(w.Close)
	return w
}

// Every policy carries TCP by every carrier, in every kind of fabric, within a pod
// and between pods, and nothing of it goes astray.
func TestHost_everyPolicyByEveryCarrier(t *testing.T) {
	for _, fabric := range []struct{ spec, a, b, c string }{
		{"fat-tree:k=4", "h0.0.2", "h3.1.2", "h0.1.3"},
		{"leaf-spine:leaves=3,spines=4,hosts=2", "10.0.0.2", "10.0.1.2", "10.0.2.3"},
		{"vl2:d0=2,d1=4,d2=4,hosts=2", "10.0.0.2", "10.0.3.2", "10.0.1.3"},
	} {
		names := policy.Names()
		if fabric.spec != "fat-tree:k=4" || testing.Short() {
			names = []string{"ecmp", "drb", "luopan", "conga"}
		}
		for _, name := range names {
			for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
				w := carried(t, 1e9, fabric.spec, carrier, name)
				w.Flow(fabric.a, fabric.b, 300_000)
				w.Flow(fabric.c, fabric.a, 100_000)
				w.Flow(fabric.b, fabric.a, 100_000)
				if err := w.Run(10 * time.Second); err != nil {
					t.Errorf("%s, %s by %v: %v; %+v", fabric.spec, name, carrier, err, w.Network().Stats())
					continue
				}
				s := w.Host(fabric.a).Stats()
				if s.Egress.Encapsulated == 0 || s.Egress.NoPath+s.Egress.Malformed+s.Egress.TooLong > 0 ||
					s.Ingress.Malformed+s.Ingress.BadChecksum+s.Ingress.Encapsulated+s.Ingress.NotForUs > 0 {
					t.Errorf("%s, %s by %v: %+v, %+v", fabric.spec, name, carrier, s.Egress, s.Ingress)
				}
			}
		}
	}
}

// A host that watches its paths does so by the labels of its data, boomerangs
// included: of a switch that falls silent it finds out as by IP-in-IP.
func TestHost_watchesItsPathsBySRv6(t *testing.T) {
	inShort(t)
	for _, fabric := range []struct{ spec, a, b, dead, near string }{
		{"fat-tree:k=4", "h0.0.2", "h3.0.2", "c1.1", "3.0"},
		{"fat-tree:k=4", "h0.0.2", "h0.1.2", "a0.2", ""},
	} {
		w := carried(t, busyRate, fabric.spec, encap.CarrierSRv6, "drb", func(c *stack.Config) { c.Liveness = &stack.Liveness{} })
		f := w.Flow(fabric.a, fabric.b, world.Endless)
		until(t, w, 50*time.Millisecond)
		// The queue that a slow start fills may drop one or two.
		if s := w.Host(fabric.a).Stats().Liveness; s.Watcher.Answered == 0 || s.Watcher.Missed*10 > s.Watcher.Answered || s.Watcher.Unknown > 0 || !whole(w, fabric.a) {
			t.Fatalf("%s: before anything fails: %+v", fabric.dead, s)
		}
		paths, _ := w.Host(fabric.a).Paths()
		for _, p := range paths {
			if p.RTT == 0 && p.Dst != w.Topology().Node(0).Addr {
				t.Errorf("%s: nothing came home by path %d to %v, via %v", fabric.dead, p.Path, p.Dst, p.Via)
			}
		}
		w.Fail(fabric.dead)
		within(t, w, 500*time.Millisecond, "the host quits "+fabric.dead, func() bool { return !whole(w, fabric.a) })
		before := f.Received
		until(t, w, w.Now()+200*time.Millisecond)
		if f.Received-before < 1e6 {
			t.Errorf("%s: %d bytes in 200 ms without it", fabric.dead, f.Received-before)
		}
		w.Heal(fabric.dead)
		within(t, w, 5*time.Second, "all is used again", func() bool { return whole(w, fabric.a) })
	}
}
