package main

import (
	"context"
	"fmt"
	"strings"

	"weft/bench/failover"
	"weft/bench/permutation"
	"weft/bench/simfile"
	"weft/bench/testbed"
	"weft/internal/config"
	"weft/internal/frr"
	"weft/topology"
	"weft/topology/graph"
)

// demoFabric is what the demo's links and switches are: a computed fabric, or a graph.
type demoFabric interface {
	fmt.Stringer
	NumNodes() int
	NumLinks() int
	// permutation says who sends to whom. Asked again, it answers at once.
	permutation(ctx context.Context, seed uint64) ([]permutation.Stream, error)
	// readStreams reads a file that says so.
	readStreams(file string) (*simfile.Streams, error)
	// ideal is the max-min fair goodput of streams, on links of mbit where they have no rate.
	ideal(streams []permutation.Stream, mbit float64) []float64
	// hostLinks are each host's first link.
	hostLinks() []topology.LinkID
	// rate of a link in Mbit/s; 0: it has none of its own.
	rate(topology.LinkID) float64
	// spines are the names of the switches of the top layer.
	spines() []string
	// spineShares returns each spine's part of the bytes that all spines sent down.
	spineShares([]testbed.LinkBytes) []float64
	// set sets the fabric of a testbed.
	set(*testbed.Config)
}

// readDemoFabric reads a specification, or a file. Links of a graph that have no rate get mbit, as
// they have it in the lab.
func readDemoFabric(spec string, mbit float64) (demoFabric, error) {
	t, g, err := config.Fabric(spec)
	switch {
	case err != nil:
		return nil, err
	case t != nil:
		return computedFabric{t}, nil
	}
	var s graph.Spec
	for id := range graph.NodeID(g.NumNodes()) {
		s.Nodes = append(s.Nodes, g.Node(id))
	}
	for id := range graph.LinkID(g.NumLinks()) {
		l := g.Link(id)
		if l.Rate == 0 {
			l.Rate = mbit
		}
		s.Links = append(s.Links, l)
	}
	if g, err = graph.New(s); err != nil {
		return nil, usagef("--topology %s: %w", spec, err)
	}
	f := graphFabric{Graph: g, file: spec, chosen: make(map[uint64][]permutation.Stream)}
	if f.NumHosts() < 2 {
		return nil, usagef("--topology %s: %d hosts; give the graph two or more (tier: 0)", spec, f.NumHosts())
	}
	for id := range graph.NodeID(g.NumHosts()) {
		switch n := g.Node(id); {
		case !n.IPv4().IsValid():
			return nil, usagef("--topology %s: host %s has no IPv4 address: give it one under addresses", spec, n.Name)
		case len(g.Up(id)) == 0:
			return nil, usagef("--topology %s: host %s has no link: give it one under links", spec, n.Name)
		}
	}
	if f.known, err = topology.FromGraph(g, g.Node(0).IPv4()); err != nil {
		return nil, usagef("--topology %s: %w", spec, err)
	}
	return f, nil
}

// readFabric reads the fabric, and who sends to whom in it.
func (o *demoOptions) readFabric(ctx context.Context) (demoFabric, error) {
	f, err := readDemoFabric(o.topology, o.rate)
	if err != nil {
		return nil, err
	}
	if g, ok := f.(graphFabric); ok {
		if err := g.refuses(o); err != nil {
			return nil, err
		}
	}
	if o.traffic != "" {
		if o.matrix, err = f.readStreams(o.traffic); err != nil {
			return nil, fmt.Errorf("--traffic: %w", err)
		}
	}
	if g, ok := f.(graphFabric); ok { // before the work, which takes long in a large one
		if err := g.canRun(); err != nil {
			return nil, err
		}
	}
	if o.matrix != nil {
		return f, nil
	}
	for i := range o.permutations {
		if _, err := f.permutation(ctx, o.seed+uint64(i)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// computedFabric is one whose switches have weft's addresses and routes.
type computedFabric struct{ *topology.Topology }

func (f computedFabric) permutation(_ context.Context, seed uint64) ([]permutation.Stream, error) {
	return permutation.Streams(permutation.Random(f.Topology, seed)), nil
}

func (f computedFabric) readStreams(file string) (*simfile.Streams, error) {
	return simfile.ReadStreams(file, f.Topology)
}

func (f computedFabric) ideal(streams []permutation.Stream, mbit float64) []float64 {
	return failover.IdealOf(f.Topology, streams, mbit)
}

func (f computedFabric) hostLinks() (all []topology.LinkID) {
	for n := range f.Hosts() {
		all = append(all, f.Ports(n.ID)[0].Link)
	}
	return all
}

func (f computedFabric) rate(l topology.LinkID) float64 { return f.Rate(l) }

func (f computedFabric) spines() (names []string) {
	for _, n := range spines(f.Topology) {
		names = append(names, spineName(f.Topology, n))
	}
	return names
}

func (f computedFabric) spineShares(links []testbed.LinkBytes) []float64 {
	return spineShares(f.Topology, links)
}

func (f computedFabric) set(c *testbed.Config) { c.Topology = f.Topology }

// graphFabric is one whose switches run BGP, with a user's addresses.
type graphFabric struct {
	*graph.Graph
	file   string
	known  *topology.Topology // as its first host sees it
	chosen map[uint64][]permutation.Stream
}

func (f graphFabric) String() string {
	return fmt.Sprintf("%s: %d hosts, %d switches, %d links", f.file, f.NumHosts(), f.NumNodes()-f.NumHosts(), f.NumLinks())
}

func (f graphFabric) permutation(ctx context.Context, seed uint64) ([]permutation.Stream, error) {
	if all, ok := f.chosen[seed]; ok {
		return all, nil
	}
	to, err := permutation.RandomOf(ctx, f.Graph, seed)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, usagef("--topology %s: %w; say who sends to whom by --traffic FILE", f.file, err)
	}
	f.chosen[seed] = permutation.Streams(to)
	return f.chosen[seed], nil
}

func (f graphFabric) readStreams(file string) (*simfile.Streams, error) {
	return simfile.ReadStreamsOf(file, f.Graph)
}

func (f graphFabric) ideal(streams []permutation.Stream, mbit float64) []float64 {
	return failover.IdealOfGraph(f.Graph, streams, mbit)
}

func (f graphFabric) hostLinks() (all []topology.LinkID) {
	for id := range graph.NodeID(f.NumHosts()) {
		all = append(all, topology.LinkID(f.Up(id)[0].Link))
	}
	return all
}

func (f graphFabric) rate(l topology.LinkID) float64 { return f.Link(graph.LinkID(l)).Rate }

// top returns the switches of the highest tier that has some.
func (f graphFabric) top() (first, end graph.NodeID) {
	for tier := graph.MaxTier; tier > 0; tier-- {
		if first, end = f.Tier(tier); first < end {
			break
		}
	}
	return first, end
}

func (f graphFabric) spines() (names []string) {
	for id, end := f.top(); id < end; id++ {
		names = append(names, f.Node(id).Name)
	}
	return names
}

func (f graphFabric) spineShares(links []testbed.LinkBytes) []float64 {
	first, end := f.top()
	shares, sum := make([]float64, end-first), 0.0
	for id := first; id < end; id++ {
		for _, p := range f.Down(id) {
			shares[id-first] += float64(links[p.Link].Down)
			sum += float64(links[p.Link].Down)
		}
	}
	for i := range shares {
		shares[i] /= max(sum, 1)
	}
	return shares
}

func (f graphFabric) set(c *testbed.Config) { c.Graph, c.Known = f.Graph, f.known }

// refuses says what of the flags a graph does not go with.
func (f graphFabric) refuses(o *demoOptions) error {
	switch {
	case o.encap != "ipip":
		return usagef("--encap=%s: %s is a graph, in which the demo sends by ipip; weft bench permutation --routing bgp --encap srv6 has SIDs", o.encap, f.file)
	case o.meter:
		return usagef("--meter: %s is a graph, whose switches run FRR and measure nothing; leave it out", f.file)
	case o.fabric == "memory":
		return usagef("--topology %s: it is a graph, and the fabric in memory is a computed one (%s): run as root, with --fabric netns; or weft sim permutation --topology %s, which simulates it (give its links a rate)", f.file, strings.Join(computedKinds, ", "), f.file)
	}
	return nil
}

// canRun says what this machine lacks to run it.
func (f graphFabric) canRun() error {
	if err := testbed.CanUseNamespaces(); err != nil {
		return absentf("--topology %s: it is a graph, for which the demo builds network namespaces: %w; weft sim permutation --topology %s simulates it (give its links a rate)", f.file, err, f.file)
	}
	if err := frr.Available(); err != nil {
		return absentf("--topology %s: it is a graph, whose switches run FRR: %w; weft sim permutation --topology %s simulates it (give its links a rate)", f.file, err, f.file)
	}
	return nil
}

// computedKinds are those of --topology.
var computedKinds = []string{"fat-tree", "leaf-spine", "vl2"}
