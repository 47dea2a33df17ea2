package uplink

import (
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/link"
	"weft/policy"
	"weft/stack"
	"weft/topology"
)

func mustPolicy(t *testing.T, name string) policy.Policy {
	t.Helper()
	p, err := policy.New(name, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpen_saysWhichFieldIsWrong(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	pair, _ := link.NewPair(1500, 1)
	good := netip.MustParseAddr("10.0.0.130")
	for _, c := range []struct {
		name   string
		config stack.Config
		want   string
	}{
		{"no topology", stack.Config{Address: good}, "Config.Topology is missing"},
		{"no address", stack.Config{Topology: top}, "would use 10.0.0.130"},
		{"not of the fabric", stack.Config{Address: netip.MustParseAddr("192.0.2.1"), Topology: top}, "Config.Address 192.0.2.1"},
		{"a switch", stack.Config{Address: netip.MustParseAddr("10.4.1.1"), Topology: top}, "Config.Address 10.4.1.1"},
		{"the kernel's", stack.Config{Address: netip.MustParseAddr("10.0.1.3"), Topology: top}, "the embedded stack's is 10.0.1.131"},
		{"policy", stack.Config{Address: good, Topology: top, Policy: "prest"}, "Config.Policy"},
		{"carrier", stack.Config{Address: good, Topology: top, Carrier: encap.CarrierMPLS}, "Config.Carrier is mpls"},
		{"a device", stack.Config{Address: good, Topology: top, Device: pair}, "Config.Device or Config.Tunnel is given"},
		{"options", stack.Config{Address: good, Topology: top, PolicyOptions: policy.Options{FlowcellBytes: 1}}, "FlowcellBytes is 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Open(c.config, Options{})
			if err == nil {
				d.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, want %q in it", err, c.want)
			}
		})
	}
}
