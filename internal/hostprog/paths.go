package hostprog

import (
	"fmt"
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// pathWord tells a rack's paths apart in the program's tables. It is a bouncing switch's
// address, or the bytes behind the block of an SRv6 destination.
type pathWord [4]byte

// pathWords are the words of all paths to a rack, live or not, by the paths' numbers. Racks
// with equal words share them.
type pathWords struct {
	number  uint32 // tells them from others
	words   []pathWord
	bounces []netip.Addr // the bouncing switches; of SRv6 those passed at the top
}

// wordsOf returns the words of a pair's paths; if known has equal ones, those. sids is the
// rest of their SRv6 destinations: the block, the labels that all paths end with, and the
// label for decapsulation.
func wordsOf(s topology.PathSet, c encap.Carrier, known map[string]*pathWords) (w *pathWords, sids [16]byte, err error) {
	key := fmt.Sprint(s.Bounce(0))
	w = &pathWords{number: uint32(len(known) + 1)}
	if c == encap.CarrierSRv6 {
		if w.words, sids, err = labelWords(s); err != nil {
			return nil, sids, err
		}
		b := make([]byte, 0, s.Count()*len(pathWord{}))
		for _, word := range w.words {
			b = append(b, word[:]...)
		}
		key = string(b)
	}
	if same := known[key]; same != nil {
		return same, sids, nil
	}
	known[key] = w
	for n := range s.Count() {
		w.bounces = append(w.bounces, s.Addr(n))
		if c == encap.CarrierIPIP {
			w.words = append(w.words, s.Addr(n).As4())
		}
	}
	return w, sids, nil
}

// labelWords divides the labels of a pair's paths into the words, which are the heads
// of paths.Split, and the rest.
func labelWords(s topology.PathSet) (words []pathWord, sids [16]byte, err error) {
	l, err := paths.Split(s)
	if err != nil {
		return nil, sids, err
	}
	if l.Size > len(pathWord{}) {
		return nil, sids, fmt.Errorf("they differ in the first %d labels, but the spray program has room for %d; use the embedded stack", l.Size, len(pathWord{}))
	}
	sids = l.Tail
	copy(sids[:paths.Block], l.Heads[0][:])
	words = make([]pathWord, len(l.Heads))
	for n, h := range l.Heads {
		copy(words[n][:], h[paths.Block:])
	}
	return words, sids, nil
}

// bouncesOf says to which bouncing switch the words of racks' paths lead.
func bouncesOf(racks []sprayRack) map[pathWord]netip.Addr {
	all := make(map[pathWord]netip.Addr)
	seen := make(map[*pathWords]bool)
	for _, r := range racks {
		if seen[r.words] {
			continue
		}
		seen[r.words] = true
		for n, word := range r.words.words {
			all[word] = r.words.bounces[n]
		}
	}
	return all
}
