package stack

import (
	"strings"
	"testing"

	"weft/encap"
	"weft/link"
	"weft/policy"
	"weft/topology"
)

func TestNew_rejectsBadPolicyOptions(t *testing.T) {
	near, _ := link.NewPair(1500, 1)
	for _, o := range []policy.Options{{FlowcellBytes: 7}, {FlowletGap: -1}} {
		h, err := New(Config{Address: addrA, Topology: fatTree, Device: near, PolicyOptions: o})
		if err == nil {
			h.Close()
			t.Errorf("%+v is accepted", o)
		} else if s := err.Error(); !strings.Contains(s, "Config.PolicyOptions: Flow") {
			t.Errorf("%+v: %v; does not name the field", o, err)
		}
	}
}

// A rate that no policy can go by is refused, though the first topology has its own.
func TestNew_absurdLinkRate(t *testing.T) {
	rated, err := topology.Parse("fat-tree:k=4,fabric-rate=1000,host-rate=1000")
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{-1, 1, 999, 2e13} {
		if h, err := New(Config{Address: addrA, Topology: rated, Device: &tape{}, Policy: "luopan", PolicyOptions: policy.Options{LinkRateBits: rate}, Simulation: Simulation{Clock: &handClock{}}}); err == nil {
			h.Close()
			t.Errorf("%v bit/s is taken", rate)
		} else if !strings.Contains(err.Error(), "LinkRateBits") {
			t.Error(err)
		}
	}
}
func TestNew_rejectsBadCarriers(t *testing.T) {
	wide, err := topology.Parse("leaf-spine:leaves=300,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	near, _ := link.NewPair(1500, 1)
	small, _ := link.NewPair(600, 1)
	_, super := superPair(1500)
	far := encapsulating{GatewayDevice: super}
	for want, c := range map[string]Config{
		"Config.Carrier mpls":                        {Topology: fatTree, Device: near, Carrier: encap.CarrierMPLS},
		"Config.Carrier is carrier 9":                {Topology: fatTree, Device: near, Carrier: 9},
		"Config.Carrier srv6: topology: switch a0.0": {Topology: wide, Device: near, Carrier: encap.CarrierSRv6},
		"from 616": {Topology: fatTree, Device: small, Carrier: encap.CarrierSRv6},
		"Config.PolicyOptions: LinkRateBits is -1": {Topology: fatTree, Device: near, PolicyOptions: policy.Options{LinkRateBits: -1}},
		"Config.PolicyOptions: Tau is -1ns":        {Topology: fatTree, Device: near, PolicyOptions: policy.Options{Tau: -1}},
		"Config.Policy local cannot":               {Topology: fatTree, Device: far, Policy: "local"},
		"not know the group of paths of each flow": {Topology: fatTree, Device: far, Policy: "presto", PolicyOptions: policy.Options{Groups: true}},
	} {
		c.Address = c.Topology.EmbeddedAddr(0)
		h, err := New(c)
		if err == nil {
			h.Close()
			t.Errorf("%s is accepted", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	h, err := New(Config{Address: fatTree.EmbeddedAddr(0), Topology: fatTree, Device: near, Carrier: encap.CarrierSRv6})
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
}
