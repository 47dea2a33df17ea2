package kerneltest

import (
	"testing"

	"weft/topology"
)

// Topology is topology.Parse.
func Topology(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// Node finds a node by name.
func Node(t testing.TB, top *topology.Topology, name string) topology.Node {
	t.Helper()
	n, err := top.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Hosts lists the hosts.
func Hosts(top *topology.Topology) []topology.Node {
	var hosts []topology.Node
	for h := range top.Hosts() {
		hosts = append(hosts, h)
	}
	return hosts
}

// LabelFabrics are one of each kind.
var LabelFabrics = []string{"fat-tree:k=4", "leaf-spine:leaves=3,spines=4,hosts=2", "vl2:d0=2,d1=4,d2=4,hosts=2", "fat-tree:k=8"}

// EachPath calls f for every path between the first host of each rack and the
// last of each other.
func EachPath(t *testing.T, top *topology.Topology, f func(src, dst topology.Node, s topology.PathSet, n int)) {
	t.Helper()
	paths := 0
	for src := range top.Hosts() {
		for dst := range top.Hosts() {
			a, b := src.Addr.As4(), dst.Addr.As4()
			if s := top.Paths(src.ID, dst.ID); a[3] == 2 && (b[3] != 2 || top.NumHosts() == 2) && !s.Direct() {
				for n := range s.Count() {
					f(src, dst, s, n)
					paths++
				}
			}
		}
	}
	if paths == 0 {
		t.Fatal("no path was looked at")
	}
}
