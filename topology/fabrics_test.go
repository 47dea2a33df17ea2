package topology

import "testing"

// smallSpecs are fabrics of all kinds, small enough for every pair to be
// looked at. Property tests run over all of them.
var smallSpecs = []string{
	"fat-tree:k=2",
	"fat-tree:k=4",
	"fat-tree:k=4,hosts=5",
	"fat-tree:k=6",
	"leaf-spine:leaves=1,spines=1,hosts=2",
	"leaf-spine:leaves=4,spines=3,hosts=2",
	"leaf-spine:leaves=3,spines=7,hosts=3",
	"vl2:d0=2,d1=2,d2=4,hosts=3",
	"vl2:d0=2,d1=4,d2=4,hosts=2",
	"vl2:d0=3,d1=4,d2=9,hosts=1",
	"vl2:d0=1,d1=6,d2=3,hosts=2",
	"vl2:d0=2,d1=4,d2=2,hosts=2", // one group
}

func fabrics(t testing.TB) (list []*Topology) {
	t.Helper()
	for _, spec := range smallSpecs {
		list = append(list, mustParse(t, spec))
	}
	return list
}

// manyFabrics are fabrics whose numbers do not fit into one octet.
func manyFabrics(t testing.TB) (list []*Topology) {
	t.Helper()
	for _, spec := range []string{
		"leaf-spine:leaves=600,spines=3,hosts=1",
		"leaf-spine:leaves=3,spines=700,hosts=125",
		"vl2:d0=2,d1=40,d2=600,hosts=1",
	} {
		list = append(list, mustParse(t, spec))
	}
	return list
}

func mustParse(t testing.TB, spec string) *Topology {
	t.Helper()
	top, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}
