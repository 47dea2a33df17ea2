package prober

import (
	"testing"
	"time"

	"weft/encap"
	"weft/liveness"
	"weft/topology"
)

// A peer that was taken for a plain host is tried as soon as it sends a probe.
func TestProber_hearsOfPeers(t *testing.T) {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	self, peer := top.Node(0), top.Node(15)
	w, err := liveness.New(liveness.Config{Topology: top, Self: self.ID, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for ; now < 100*time.Second || w.Next() < now+time.Second/4; now += time.Millisecond {
		w.Active(peer.ID, peer.Addr, now)
		w.Tick(now)
		w.Probes(func(*liveness.Probe) {})
	}
	// Its own clock is behind, so that the time is the test's.
	p := &Prober{self: self.ID, address: self.Addr, start: time.Now().Add(10*time.Second - now), watcher: w, base: top, sockets: sockets{out: -1}}
	packet, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), encap.Probe{Kind: encap.ProbeRequest, Origin: peer.Addr, Target: self.Addr})
	if err != nil {
		t.Fatal(err)
	}
	p.take(packet)
	if next := w.Next(); next > now || p.stats.Echoed != 1 {
		t.Errorf("at %v the next probe is due at %v; %+v", now, next, p.stats)
	}
}
