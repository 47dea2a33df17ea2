package prober

import (
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/probe"
	"weft/liveness"
	"weft/luopan"
	"weft/topology"
)

// A peer that was taken for a plain host is tried as soon as it sends a probe.
func TestProber_hearsOfPeers(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self, peer := top.Node(0), top.Node(15)
	d, err := probe.New(probe.Config{Topology: top, Address: self.Addr, Seed: 1, Write: func([]byte, netip.Addr) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w := d.Watcher()
	now := time.Duration(0)
	for ; now < 100*time.Second || w.Next() < now+time.Second/4; now += time.Millisecond {
		w.Active(peer.ID, peer.Addr, now)
		w.Tick(now)
		w.Probes(func(*liveness.Probe) {})
	}
	packet, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), encap.Probe{Kind: encap.ProbeRequest, Origin: peer.Addr, Target: self.Addr})
	if err != nil {
		t.Fatal(err)
	}
	d.Take(packet, now)
	if next := w.Next(); next > now || d.Stats().Echoed != 1 {
		t.Errorf("at %v the next probe is due at %v; %+v", now, next, d.Stats())
	}
}

// So is one that was left alone when samples were due.
func TestSampler_hearsOfPeers(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self, peer := top.Node(0), top.Node(15)
	table, err := luopan.New(luopan.Config{Idle: time.Hour, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	table.Choose(uint32(top.EdgeOf(peer.ID)), probe.Number(peer.Addr), []int{0, 1, 2, 3}, 0)
	now := time.Duration(0)
	for table.Next() < now+10*time.Second { // until it rests
		now = table.Next()
		table.Probes(now, func(luopan.Probe) {})
	}
	s := newSampler(SamplerConfig{Address: self.Addr, Topology: top}, table)
	s.socket = nowhere{}
	packet, err := encap.AppendSample(nil, encap.Sample{Token: 1, From: peer.Addr, To: self.Addr})
	if err != nil {
		t.Fatal(err)
	}
	s.take(packet, now)
	if next := table.Next(); next > now || s.sampler.Stats().Answered != 1 {
		t.Errorf("at %v the next probe is due at %v; %+v", now, next, s.sampler.Stats())
	}
}

// nowhere is a socket that takes everything.
type nowhere struct{ socket }

func (nowhere) Write(bufs [][]byte, _ int) (int, error) { return len(bufs), nil }
func (nowhere) Drops() uint64                           { return 0 }
