package main

import (
	"context"
	"math/rand/v2"
	"time"

	"weft/internal/live"
	"weft/topology"
)

const (
	rate  = 10e9    // of a link, bit/s
	room  = 1 << 20 // of a port's queue, bytes
	frame = 1500
)

// traffic is a fabric in which each host sends to one of another pod, evenly over all paths, at a
// rate of its own. One link is down, one is silent, and one port drops. It is a live.Source.
type traffic struct {
	fabric *live.Fabric
	begun  time.Time
	up     []float64 // what each link carries, bit/s
	down   []float64
	ends   [3]int // of fabric.Links: the one that is down, the silent one, and the one that drops
}

func newTraffic(t *topology.Topology) *traffic {
	f := &live.Fabric{Version: 1, Kind: live.KindLab, Name: "made up", About: t.String() + ", no lab: traffic that is made up"}
	for n := range t.Nodes() {
		f.Nodes = append(f.Nodes, live.Node{Name: n.Name, Tier: int(n.Layer), Address: n.Addr.String()})
	}
	for l := range t.Links() {
		f.Links = append(f.Links, live.Link{Name: t.LinkName(l.ID), A: int(l.A), B: int(l.B), Rate: rate, Room: room})
	}
	s := &traffic{fabric: f, begun: time.Now(), up: make([]float64, len(f.Links)), down: make([]float64, len(f.Links))}
	r := rand.New(rand.NewPCG(1, 2))
	n := t.NumHosts()
	for src := range n {
		dst := topology.NodeID((src + n/2) % n)
		s.spread(t, topology.NodeID(src), dst, (0.05+0.85*r.Float64()*r.Float64())*rate)
	}
	last := len(f.Links) - 1
	s.ends = [3]int{last, last / 2, 2 * last / 3}
	s.up[s.ends[0]], s.down[s.ends[0]] = 0, 0
	return s
}

// spread adds a stream to the links that carry it.
func (s *traffic) spread(t *topology.Topology, src, dst topology.NodeID, bits float64) {
	paths := t.Paths(src, dst)
	for _, n := range paths.Live {
		p := paths.Path(n)
		for i, l := range p.Links {
			of := s.down
			if t.Link(l).A == p.Hops[i] {
				of = s.up
			}
			of[l] += bits / float64(len(paths.Live))
		}
	}
}

func (s *traffic) Fabric(context.Context) (*live.Fabric, error) { return s.fabric, nil }

func (s *traffic) Sample(context.Context) (live.Sample, error) {
	now := time.Now()
	passed := now.Sub(s.begun).Seconds()
	all := live.Sample{At: now, Links: make([]live.LinkSample, len(s.fabric.Links)),
		Failures: []live.Failure{{Target: s.fabric.Links[s.ends[0]].Name, Mode: "loud"}, {Target: s.fabric.Links[s.ends[1]].Name, Mode: "silent"}}}
	for i := range all.Links {
		all.Links[i] = live.LinkSample{Up: counters(s.up[i], passed), Down: counters(s.down[i], passed), State: live.Working}
	}
	all.Links[s.ends[0]].State = live.Broken
	all.Links[s.ends[1]].State = live.Silent
	drops := &all.Links[s.ends[2]].Down
	drops.Drops, drops.Queue = uint64(passed*200), room
	return all, nil
}

// counters are those of a port that has sent at a rate for a time.
func counters(bits, seconds float64) live.Counters {
	bytes := bits * seconds / 8
	return live.Counters{Known: true, Bytes: uint64(bytes), Packets: uint64(bytes / frame), Queue: uint64(room / 4 * bits / rate)}
}

func (s *traffic) Paths(from, to int) []live.Path { return s.fabric.Paths(from, to) }

func (s *traffic) Close() error { return nil }
