package conga

import (
	"fmt"
	"math/rand/v2"

	"weft/bench/papers"
	"weft/topology"
)

// fabric is one with parallel links between a leaf and a spine: of so many spines of Topology
// each are one switch (sim.Config.Parallel).
type fabric struct {
	*topology.Topology
	parallel int
}

// parallelLinks says how they are modelled.
var parallelLinks = papers.Parameter{
	Name: "parallel links", Value: "a leaf's links to a spine are ports of their own, as are the spine's to a leaf, among whose live ones it takes one by a hash of the flow (§3.3). weft's own policies name both links of a path: the way down is that of the same number, and both must be live",
}

// testbed is Fig. 7a: 2 leaves, 2 spines, 2 links of 40 Gbit/s between each two.
func testbed(hosts int) (fabric, error) {
	t, err := topology.Parse(fmt.Sprintf("leaf-spine:leaves=2,spines=4,hosts=%d,host-rate=10000,fabric-rate=40000", hosts))
	return fabric{t, 2}, err
}

// The links between leaf 1 and spine 1 in Fig. 7b: of the two one is down.
const (
	brokenLink = "e0.1-a0.2"
	leftLink   = "e0.1-a0.3"
)

// broken is Fig. 7b.
func broken(hosts int) (fabric, error) {
	f, err := testbed(hosts)
	if err != nil {
		return f, err
	}
	link, err := f.LinkByName(brokenLink)
	if err != nil {
		return f, err
	}
	f.Topology = f.Without(link.ID)
	return f, nil
}

// scattered is Fig. 16: 6 leaves and 3 spines, 3 links of 40 Gbit/s between each two,
// of which some have failed at random.
func scattered(hosts, failures int, seed uint64) (fabric, error) {
	const leaves, spines, parallel = 6, 3, 3
	t, err := topology.Parse(fmt.Sprintf("leaf-spine:leaves=%d,spines=%d,hosts=%d,host-rate=10000,fabric-rate=40000", leaves, spines*parallel, hosts))
	if err != nil {
		return fabric{}, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x66696731))
	var down []topology.LinkID
	for _, link := range rng.Perm(leaves * spines * parallel)[:failures] {
		down = append(down, topology.LinkID(t.NumHosts()+link))
	}
	return fabric{t.Without(down...), parallel}, nil
}
