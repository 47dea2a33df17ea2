package conga

import (
	"fmt"
	"math/rand/v2"

	"weft/bench/papers"
	"weft/topology"
)

// Parallel links between a leaf and a spine, of which our topologies know none, are
// either spines of their own or one link as fast as all of them.

// asSpines are the links of the whole testbed: a leaf has four uplinks of 40 Gbit/s
// to choose from, as in the paper.
var asSpines = papers.Parameter{
	Name: "parallel links", Value: "2 x 2 of 40 Gbit/s from a leaf are 4 spines with a link each", Chosen: true,
	Why: "the leaf chooses among 4 uplinks as in the paper; its spines' choice between 2 links down is left out, to ECMP's advantage as to CONGA's",
}

// asOne are those of a fabric with failures.
var asOne = papers.Parameter{
	Name: "parallel links", Value: "those between a leaf and a spine are one as fast as the live ones together", Chosen: true,
	Why: "ECMP must go on sending as much to a spine that has lost a link down, which is what the paper shows; with spines of their own the path would be gone",
}

// testbed is Fig. 7a.
func testbed(hosts int) (*topology.Topology, error) {
	return topology.Parse(fmt.Sprintf("leaf-spine:leaves=2,spines=4,hosts=%d,host-rate=10000,fabric-rate=40000", hosts))
}

// broken is Fig. 7b: one of the two links between leaf 1 and spine 1 is down.
func broken(hosts int) (*topology.Topology, error) {
	return topology.Parse(fmt.Sprintf("leaf-spine:leaves=2,spines=2,hosts=%d,host-rate=10000,fabric-rate=80000,e0.1-a0.1=40000", hosts))
}

// scattered is Fig. 16: 6 leaves and 3 spines, 3 links of 40 Gbit/s between each two,
// of which some have failed at random. Where all three have, there is none.
func scattered(hosts, failures int, seed uint64) (*topology.Topology, error) {
	const leaves, spines, parallel, mbit = 6, 3, 3, 40_000
	left := make([]int, leaves*spines)
	for i := range left {
		left[i] = parallel
	}
	rng := rand.New(rand.NewPCG(seed, 0x66696731))
	for _, link := range rng.Perm(len(left) * parallel)[:failures] {
		left[link/parallel]--
	}
	spec := fmt.Sprintf("leaf-spine:leaves=%d,spines=%d,hosts=%d,host-rate=10000,fabric-rate=%d", leaves, spines, hosts, parallel*mbit)
	var down []string
	for i, n := range left {
		name := fmt.Sprintf("e0.%d-a0.%d", i/spines, i%spines)
		switch n {
		case 0:
			down = append(down, name)
		case parallel:
		default:
			spec += fmt.Sprintf(",%s=%d", name, n*mbit)
		}
	}
	t, err := topology.Parse(spec)
	if err != nil {
		return nil, err
	}
	for _, name := range down {
		link, err := t.LinkByName(name)
		if err != nil {
			return nil, err
		}
		t = t.Without(link.ID)
	}
	return t, nil
}
