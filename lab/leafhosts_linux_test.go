package lab

import (
	"testing"
	"time"

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
	l.share(2, 500*time.Millisecond)
	b, err := l.Balanced(l.leaf.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Stats(); b.Leaf.Learned < 20 || b.Leaf.Guided == 0 || n.Answered < b.Leaf.Learned || n.Forged+n.Refused != 0 {
		t.Errorf("leaf %+v, host %+v", b.Leaf, n)
	}
}
