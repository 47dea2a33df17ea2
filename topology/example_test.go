package topology_test

import (
	"fmt"

	"weft/topology"
)

// The paths between two hosts, and those that a dead link leaves.
func Example() {
	fabric, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		panic(err)
	}
	src, _ := fabric.Lookup("10.0.0.2")
	dst, _ := fabric.Lookup("h3.1.3")
	all := fabric.Paths(src.ID, dst.ID)
	for _, n := range all.Live {
		fmt.Println(n, "by", all.Name(n))
	}

	link, _ := fabric.LinkByName("a2.2-c1.1")
	fmt.Println(len(fabric.Without(link.ID).Paths(src.ID, dst.ID).Live), "paths, since that link is on none")
	link, _ = fabric.LinkByName("a3.2-c1.1")
	fmt.Println(len(fabric.Without(link.ID).Paths(src.ID, dst.ID).Live), "paths")
	// Output:
	// 0 by 3.0
	// 1 by 3.1
	// 2 by 3.2
	// 3 by 3.3
	// 4 paths, since that link is on none
	// 3 paths
}
