package hostprog

import (
	"net/netip"
	"strings"
	"testing"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/internal/paths"
	"weft/topology"
)

// destination puts a path's word into the rest of its destination, as the program does.
func destination(sids [16]byte, word pathWord) netip.Addr {
	for i, b := range word {
		sids[paths.Block+i] |= b
	}
	return netip.AddrFrom16(sids)
}

// Of every path of every kind of fabric, words and the rest make the destination
// that says its labels; no two paths have the same, and the words alone tell at
// which switch a path turns round.
func TestWordsOf_areTheLabels(t *testing.T) {
	for _, c := range []struct {
		spec string
		own  map[int]int // labels in the word, by how many choices a path has
	}{
		{"fat-tree:k=6", map[int]int{1: 1, 2: 2}},
		{"leaf-spine:leaves=4,spines=4,hosts=3", map[int]int{1: 1}},
		{"leaf-spine:leaves=4,spines=1,hosts=3", map[int]int{1: 1}},
		{"vl2:d0=2,d1=4,d2=4", map[int]int{1: 1, 3: 3}},
		{"fat-tree:k=2", map[int]int{2: 2}},
	} {
		top := kerneltest.Topology(t, c.spec)
		for self := range top.Hosts() {
			racks, err := racksOf(top, self.ID, encap.CarrierSRv6)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range racks {
				set := top.Paths(self.ID, r.edge)
				seen := make(map[netip.Addr]bool)
				for n, word := range r.words.words {
					labels := set.Choices(n)
					want, err := encap.SIDs(labels)
					if err != nil {
						t.Fatal(err)
					}
					got := destination(r.sids, word)
					if got != want || seen[got] {
						t.Fatalf("%s, %s to %v, path %d: %v of word %x, want %v", c.spec, self.Name, r.prefix, n, got, word, want)
					}
					seen[got] = true
					own := len(labels)
					for own > 0 && r.sids[paths.Block+own-1] != 0 {
						own--
					}
					if own != c.own[len(labels)] || r.words.bounces[n] != set.Addr(n) {
						t.Fatalf("%s, %s to %v, path %d: %d labels of its own by %v, want %d by %v",
							c.spec, self.Name, r.prefix, n, own, r.words.bounces[n], c.own[len(labels)], set.Addr(n))
					}
				}
				if len(seen) != set.Count() {
					t.Fatalf("%s: %d paths, want %d", c.spec, len(seen), set.Count())
				}
			}
			switches := make(map[pathWord]netip.Addr)
			for _, r := range racks {
				for n, word := range r.words.words {
					if other, ok := switches[word]; ok && other != r.words.bounces[n] {
						t.Fatalf("%s: word %x leads to %v and %v", c.spec, word, other, r.words.bounces[n])
					}
					switches[word] = r.words.bounces[n]
				}
			}
		}
	}
}

// Whatever is down, a rack's words are the same: the counters have no others.
func TestWordsOf_doNotDependOnWhatIsDown(t *testing.T) {
	top := kerneltest.Topology(t, "vl2:d0=2,d1=4,d2=4")
	var links []topology.LinkID
	for l := range top.Links() {
		if l.ID%3 == 0 {
			links = append(links, l.ID)
		}
	}
	whole, err1 := racksOf(top, 0, encap.CarrierSRv6)
	less, err2 := racksOf(top.Without(links...), 0, encap.CarrierSRv6)
	if err1 != nil || err2 != nil || len(whole) != len(less) {
		t.Fatal(err1, err2)
	}
	for i := range whole {
		if whole[i].sids != less[i].sids || string(wordBytes(whole[i])) != string(wordBytes(less[i])) {
			t.Errorf("%v: other words", whole[i].prefix)
		}
	}
}

func wordBytes(r sprayRack) (b []byte) {
	for _, w := range r.words.words {
		b = append(b, w[:]...)
	}
	return b
}

// A fabric whose switches have more ports than there are labels is refused, with
// the port.
func TestWordsOf_tooManyPorts(t *testing.T) {
	top := kerneltest.Topology(t, "leaf-spine:leaves=2,spines=240,hosts=1")
	_, err := racksOf(top, 0, encap.CarrierSRv6)
	if err == nil || !strings.Contains(err.Error(), "port 223") || !strings.Contains(err.Error(), "10.0.1.0/24") {
		t.Errorf("%v; does not say which port, on the way to which rack", err)
	}
	if _, err := racksOf(top, 0, encap.CarrierIPIP); err != nil {
		t.Error(err)
	}
}
