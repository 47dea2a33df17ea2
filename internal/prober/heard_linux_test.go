package prober

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/dataplane/dataplanetest"
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
		w.Active(peer.Addr, peer.Addr, now)
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

// Of another fabric a Sampler forgets all: racks and the host itself have other numbers
// there. Links that fail change nothing about what it knows.
func TestSampler_anotherFabric(t *testing.T) {
	small, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	big, err := topology.Parse("fat-tree:k=8")
	if err != nil {
		t.Fatal(err)
	}
	self, peer := netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.3.1.3") // not the first pod: its hosts keep their numbers
	var rack netip.Prefix
	var path int
	c := SamplerConfig{Address: self, Topology: small, Seed: 1, FlowcellBytes: 64 << 10,
		Decide: func(r netip.Prefix, p int, valid time.Duration) error { rack, path = r, p; return nil }}
	table, err := c.table()
	if err != nil {
		t.Fatal(err)
	}
	s, out := newSampler(c, table), &tape{}
	now := &dataplanetest.StillClock{Time: time.Second} // samples do not get old
	s.socket, s.clock = out, now
	// learn has flowcells begin, and answers what is asked.
	learn := func(top *topology.Topology) {
		t.Helper()
		edge, _ := top.RackAt(peer)
		s.active(top.RackOf(edge), peer, 1)
		s.sampler.Pump(s.clock.Now())
		id, _ := top.ByAddr(self)
		to, _ := top.ByAddr(peer)
		set := top.Paths(id, to)
		probes := out.packets
		if out.packets = nil; len(probes) != 2 {
			t.Fatalf("%v: %d probes: %+v", top, len(probes), s.Stats())
		}
		for i, b := range probes {
			m, err := encap.ParseSample(b[20:])
			if err != nil {
				t.Fatal(err)
			}
			if got := netip.AddrFrom4([4]byte(b[16:])); got != set.Addr(int(m.Path)) || m.To != peer || m.From != self {
				t.Errorf("%v: a probe to %v: %+v", top, got, m)
			}
			m.ACK, m.From, m.To, m.Meters, m.Queue, m.Received = true, peer, self, 5, uint8(9*i), 1
			answer, err := encap.AppendSample(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			path = -1
			now.Time += 10 * time.Microsecond
			s.take(answer, s.clock.Now())
			if i == 0 && (rack != top.RackOf(edge) || path != int(m.Path)) {
				t.Errorf("%v: decided is %d to %v, %d is best", top, path, rack, m.Path)
			}
		}
		if d := s.Destinations(); len(d) != 1 || d[0].Destination != uint32(edge) || len(d[0].Samples) != 2 {
			t.Errorf("%v: known is %+v", top, d)
		}
	}
	learn(small)
	s.SetTopology(small.Without(40))
	if d := s.Destinations(); len(d) != 1 {
		t.Errorf("after a failure is known %+v", d)
	}
	s.SetTopology(big)
	if d := s.Destinations(); len(d) != 0 {
		t.Errorf("of another fabric is known %+v", d)
	}
	learn(big)
}

// tape is a socket that keeps what is written.
type tape struct {
	nowhere
	packets [][]byte
}

func (d *tape) Write(bufs [][]byte, _ int) (int, error) {
	for _, b := range bufs {
		d.packets = append(d.packets, slices.Clone(b))
	}
	return len(bufs), nil
}

// nowhere is a socket that takes everything.
type nowhere struct{ socket }

func (nowhere) Write(bufs [][]byte, _ int) (int, error) { return len(bufs), nil }
func (nowhere) Drops() uint64                           { return 0 }
