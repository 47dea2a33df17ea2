package lab

import (
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/kerneltest"
	"weft/internal/prober"
)

// Where no leaf answers, a host with weft does: samples of a leaf are those of hosts.
func TestLeaf_samplesReachWeftHosts(t *testing.T) {
	l := upLeaf(t, "luopan")
	l.deafen()
	top := l.Config.Topology
	var s *prober.Sampler
	err := l.Do(l.dst.ID, func() (err error) {
		s, err = prober.OpenSampler(prober.SamplerConfig{Interface: "p0", Gateway: top.Node(top.EdgeOf(l.dst.ID)).Addr, Address: l.dst.Addr, Topology: top, Seed: 5})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b *fabric.BalanceStats
	for end := time.Now().Add(kerneltest.Patience); b == nil || b.Leaf.Learned < 20 || b.Leaf.Guided == 0; {
		l.share(2, 2e5)
		if b, err = l.Balanced(l.leaf.ID); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("the leaf learns nothing: %+v", b.Leaf)
		}
	}
	if n := s.Stats(); n.Answered < b.Leaf.Learned || n.Forged+n.Refused != 0 {
		t.Errorf("leaf %+v, host %+v", b.Leaf, n)
	}
}
