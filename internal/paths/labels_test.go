package paths

import (
	"slices"
	"testing"

	"weft/encap"
	"weft/topology"
)

// Head and tail together are what topology says of each path, the tail is as long as it
// can be, and the head has at least the way up.
func TestSplit_headsAndTailAreTheLabels(t *testing.T) {
	for _, spec := range []string{"fat-tree:k=4", "fat-tree:k=6", "fat-tree:k=8,hosts=1",
		"leaf-spine:leaves=3,spines=4,hosts=2", "leaf-spine:leaves=2,spines=1,hosts=1", "vl2:d0=4,d1=4,d2=8,hosts=2"} {
		fabric, err := topology.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for host := range topology.NodeID(fabric.NumHosts()) {
			set := fabric.Paths(0, host)
			if set.Direct() {
				continue
			}
			l, err := Split(set)
			if err != nil {
				t.Fatal(err)
			}
			differ := false
			for n, head := range l.Heads {
				want, err := encap.SIDs(set.Choices(n))
				if err != nil {
					t.Fatal(err)
				}
				for i, b := range want.As16() {
					inHead := i < Block+l.Size
					if head[i] != b && inHead || l.Tail[i] != b && !inHead || head[i] != 0 && !inHead || l.Tail[i] != 0 && inHead {
						t.Fatalf("%s to %d: path %d is %v, of %x and %x with %d labels", spec, host, n, want, head, l.Tail, l.Size)
					}
				}
				differ = differ || head[Block+l.Size-1] != l.Heads[0][Block+l.Size-1]
			}
			if l.Size < len(set.Bases) || l.Size > len(set.Bases) && !differ {
				t.Errorf("%s to %d: %d labels differ, the way up has %d", spec, host, l.Size, len(set.Bases))
			}
		}
	}
}

// A path without labels is an error, not a wrong way.
func TestSplit_portsWithoutLabels(t *testing.T) {
	wide, err := topology.Parse("leaf-spine:leaves=2,spines=240,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Split(wide.Paths(0, 1)); err == nil {
		t.Errorf("%+v", l)
	}
}

// OuterTo finds the outer header of each path, and nothing where there is none.
func TestOuterTo(t *testing.T) {
	fabric, _ := topology.FatTree(4)
	self, to := fabric.EmbeddedAddr(0), fabric.EmbeddedAddr(15)
	set := fabric.Paths(0, 15)
	for _, c := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		for n := range set.Count() {
			o, ok := OuterTo(fabric, c, self, to, n)
			if !ok {
				t.Fatalf("%v: no path %d", c, n)
			}
			inner := make([]byte, 20)
			inner[0], inner[3] = 0x45, 20
			b, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), inner...), 1)
			if err != nil {
				t.Fatal(err)
			}
			via := set.Addr(n).AsSlice()
			got := b[16:20]
			if c == encap.CarrierSRv6 {
				a, _ := encap.SIDs(set.Choices(n))
				via, got = a.AsSlice(), b[24:40]
			}
			if !slices.Equal(got, via) {
				t.Errorf("%v: path %d leads to %x", c, n, got)
			}
		}
		for _, bad := range []int{-1, set.Count()} {
			if _, ok := OuterTo(fabric, c, self, to, bad); ok {
				t.Errorf("%v: there is a path %d", c, bad)
			}
		}
		if _, ok := OuterTo(fabric, c, self, fabric.EmbeddedAddr(1), 0); ok {
			t.Error("a path to the same rack needs an outer header")
		}
	}
}
