package hostprog

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"weft/encap"
	"weft/internal/paths"
	"weft/topology"
)

// pathWord tells a rack's paths apart in the program's tables. It is a bouncing switch's
// IPv4 address, the bytes behind the block of an SRv6 destination, or the number of an end:
// of IPv6, and where the host has several uplinks.
type pathWord [4]byte

// end is where an outer header leads, and the uplink of the host's that its path begins with.
type end struct {
	addr netip.Addr
	from int
}

// numberedWord is the word of an end: in 240.0.0.0/4, where no switch is, half of
// which each family inside has.
func numberedWord(six bool, n int) (w pathWord) {
	first := uint32(0xf << 28)
	if six {
		first |= 1 << 27
	}
	binary.BigEndian.PutUint32(w[:], first|uint32(n))
	return w
}

// outerKind says what the outer header is. Values are those of the enum in bpf/spray.c.
type outerKind uint32

const (
	outerIPv4   outerKind = iota
	outerLabels           // IPv6 with labels
	outerIPv6             // to a bouncing switch, or its SID
)

// outerOf returns the kind for packets of a family.
func outerOf(t *topology.Topology, c encap.Carrier, six bool) outerKind {
	switch {
	case six || c == encap.CarrierSRv6 && !t.Computed():
		return outerIPv6
	case c == encap.CarrierSRv6:
		return outerLabels
	}
	return outerIPv4
}

// endOf returns where the IPv6 header of path n leads.
func endOf(s topology.PathSet, n int, c encap.Carrier, six bool) netip.Addr {
	if c == encap.CarrierSRv6 {
		a, _ := s.SID(n, six) // SprayConfig.check has seen that there are SIDs
		return a
	}
	return s.Addr(n)
}

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
func wordsOf(s topology.PathSet, known *wordBook) (w *pathWords, sids [16]byte, err error) {
	by := known.outer
	key := fmt.Sprint(s.Bounce(0), s.List())
	w = &pathWords{number: uint32(len(known.words) + 1)}
	if by == outerLabels {
		if w.words, sids, err = labelWords(s); err != nil {
			return nil, sids, err
		}
		b := make([]byte, 0, s.Count()*len(pathWord{}))
		for _, word := range w.words {
			b = append(b, word[:]...)
		}
		key = string(b)
	}
	if same := known.words[key]; same != nil {
		return same, sids, nil
	}
	known.words[key] = w
	for n := range s.Count() {
		w.bounces = append(w.bounces, s.Addr(n))
		switch {
		case by == outerIPv4 && !known.several:
			w.words = append(w.words, s.Addr(n).As4())
		case by != outerLabels:
			w.words = append(w.words, known.numbered(end{endOf(s, n, known.carrier, known.six), known.from(s, n)}))
		}
	}
	return w, sids, nil
}

// wordBook has the words that racks share, for packets of one family.
type wordBook struct {
	carrier encap.Carrier
	six     bool
	outer   outerKind
	several bool // the program is at several uplinks
	words   map[string]*pathWords
	numbers map[end]pathWord
}

func newWordBook(t *topology.Topology, c encap.Carrier, six, several bool) *wordBook {
	return &wordBook{c, six, outerOf(t, c, six), several, make(map[string]*pathWords), make(map[end]pathWord)}
}

// from returns which uplink a path begins with, 0 if the program is at one alone.
func (b *wordBook) from(s topology.PathSet, n int) int {
	if !b.several {
		return 0
	}
	return s.From(n)
}

// numbered returns the word of an end.
func (b *wordBook) numbered(e end) pathWord {
	w, ok := b.numbers[e]
	if !ok {
		w = numberedWord(b.six, len(b.numbers))
		b.numbers[e] = w
	}
	return w
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
