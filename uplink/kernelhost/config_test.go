package kernelhost

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/link"
	"weft/policy"
	"weft/resequencer"
	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

func fatTree(t *testing.T) *topology.Topology {
	t.Helper()
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// What the kernel cannot do is refused by the field's name before anything is changed.
func TestNew_saysWhatItCannotDo(t *testing.T) {
	top := fatTree(t)
	pair, _ := link.NewPair(1500, 1)
	own := netip.MustParseAddr("10.0.0.2")
	for _, c := range []struct {
		change func(*stack.Config)
		want   string
	}{
		{func(c *stack.Config) { c.Device = pair }, "Config.Device or Tunnel is set"},
		{func(c *stack.Config) { c.Tunnel = new(stack.Tunnel) }, "Config.Device or Tunnel is set"},
		{func(c *stack.Config) { c.Policies = make([]stack.PrefixPolicy, 1) }, "Config.Policies is set"},
		{func(c *stack.Config) { c.SprayDatagrams = true }, "Config.SprayDatagrams is set"},
		{func(c *stack.Config) { c.PolicyOptions.LinkRateBits = 1e9 }, "Config.PolicyOptions.LinkRateBits is set"},
		{func(c *stack.Config) { c.CarryIPv6 = true }, "Config.CarryIPv6 is set"},
		{func(c *stack.Config) { c.TCP.RACK = true }, "Config.TCP is set"},
		{func(c *stack.Config) { c.Simulation.Seed = 1 }, "Config.Simulation is set"},
		{func(c *stack.Config) { c.Liveness = &stack.Liveness{MinHold: 1} }, "Config.Liveness.MinHold or MaxHold is set"},
		{func(c *stack.Config) { c.Resequencer.Seed = 1 }, "Config.Resequencer.Seed is set"},
		{func(c *stack.Config) { c.Resequencer.Hold = -time.Second }, "Config.Resequencer"},
		{func(c *stack.Config) { c.Topology = nil }, "Config.Topology is missing"},
		{func(c *stack.Config) { c.Carrier = encap.CarrierMPLS }, "Config.Carrier is mpls"},
		{func(c *stack.Config) { c.Address = netip.MustParseAddr("192.0.2.1") }, "is no host's in fat-tree:k=4; that of h0.0.2 is 10.0.0.2"},
		{func(c *stack.Config) { c.Address = netip.MustParseAddr("10.0.0.130") }, "of an embedded stack on h0.0.2; its kernel's is 10.0.0.2"},
		{func(c *stack.Config) { c.Address6 = netip.MustParseAddr("2001:db8::2") }, "Topology6 is missing"},
		{func(c *stack.Config) { c.Topology6 = top }, "Config.Topology6 is not the fabric"},
		{func(c *stack.Config) { c.Policy = "prest" }, "Config.Policy"},
		{func(c *stack.Config) { c.Policy = "drill" }, "drill needs what was sent by each path"},
		{func(c *stack.Config) { c.PolicyOptions.Groups = true }, "needs the group of paths"},
		{func(c *stack.Config) {}, "10.0.0.2 is not on this machine"},
	} {
		config := stack.Config{Address: own, Topology: top}
		c.change(&config)
		h, err := New(config, uplink.Options{})
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kernelhost: ") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Each field that is given arrives where the daemon reads it, and what is left out is as in an
// empty file.
func TestHostConfig(t *testing.T) {
	c := stack.Config{Address: netip.MustParseAddr("10.0.0.2"), Topology: fatTree(t), Policy: "luopan", Carrier: encap.CarrierSRv6,
		PolicyOptions: policy.Options{FlowcellBytes: 4096, FlowletGap: 2, Samples: 3, Expiry: 4, SamplesOnly: true},
		Resequencer: resequencer.Config{Discipline: resequencer.Juggler, Hold: 5, MinHold: 6, Merge: 7, FlowPackets: 8, FlowBytes: 9,
			PeerPackets: 10, PeerBytes: 11, TotalPackets: 12, TotalBytes: 13, Flows: 14},
		Liveness: &stack.Liveness{Interval: 15, Multiplier: 16, Budget: 17, Floor: 0.18, Require: true}}
	d := hostConfig(&c, uplink.Options{Interface: "eth1", MTU: 1400})
	r, f := d.Resequencer, d.Failures
	if d.Address != c.Address || d.Policy != "luopan" || d.Encapsulation[0] != "srv6" || d.Uplink[0] != "eth1" || d.MTU != 1400 || !d.Require ||
		d.FlowcellBytes != 4096 || d.FlowletGap != 2 || d.Samples != 3 || d.Expiry != 4 || !d.SamplesOnly {
		t.Errorf("%+v", d)
	}
	if r.Discipline != "juggler" || r.Hold != 5 || r.MinHold != 6 || r.Merge != 7 || r.FlowPackets != 8 || r.FlowBytes != 9 ||
		r.PeerPackets != 10 || r.PeerBytes != 11 || r.TotalPackets != 12 || r.TotalBytes != 13 || r.Flows != 14 {
		t.Errorf("%+v", r)
	}
	if !f.Probes || f.Interval != 15 || f.Multiplier != 16 || f.Budget != 17 || f.Floor != 0.18 {
		t.Errorf("%+v", f)
	}
	d = hostConfig(&stack.Config{Address: c.Address}, uplink.Options{})
	if d.Failures.Probes || d.Require || d.FlowcellBytes != 65536 || d.Resequencer.Discipline != "presto" || len(d.Uplink) > 0 || d.Encapsulation[0] != "ipip" {
		t.Errorf("%+v", d)
	}
}
