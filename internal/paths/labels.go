package paths

import (
	"errors"

	"weft/encap"
	"weft/topology"
)

// Labels are the SRv6 destinations of all paths to a rack, live or not, by path number.
// Each is the block, a head and the tail. The heads hold what differs between the paths,
// and at least the way up, which determines the switch where it ends. All paths have the
// same tail.
type Labels struct {
	Heads [][16]byte // from the block on; zeros in place of the tail
	Size  int        // labels in each head, a byte each
	Tail  [16]byte   // zeros in place of the block and the head
}

// Block is the bytes that all SRv6 destinations begin with. The labels follow.
const Block = 2

// Split divides the labels of a pair's paths. It fails if a path has no labels, as none has
// where the fabric is data.
func Split(set topology.PathSet) (l Labels, err error) {
	if set.Count() > 0 && set.Choices(0) == nil {
		return l, errors.New("paths have no labels, as the switches' ports are not known")
	}
	l.Heads, l.Size = make([][16]byte, set.Count()), len(set.Bases)
	for n := range l.Heads {
		a, err := encap.SIDs(set.Choices(n))
		if err != nil {
			return Labels{}, err
		}
		l.Heads[n] = a.As16()
		for i := 15; i >= Block+l.Size; i-- {
			if l.Heads[n][i] != l.Heads[0][i] {
				l.Size = i + 1 - Block
			}
		}
	}
	l.Tail = l.Heads[0]
	clear(l.Tail[:Block+l.Size])
	for n := range l.Heads {
		clear(l.Heads[n][Block+l.Size:])
	}
	return l, nil
}
