package resequencer

import "weft/flowcell"

// numbering is what is known of the numbers that a sender puts into its
// packets: a Number of package flowcell, or whatever else its IPv4 ID is.
//
// Only of a sender that numbers its flowcells can a gap be told to be loss, so
// that must be shown before it is believed: some consecutive segments have
// consecutive indices, and a new flowcell begins among them. A counter runs
// through the one index that weft never uses, and does not begin a flowcell
// before; zeros and random numbers do not count on. And a belief that is shown
// wrong, since a segment arrives behind one of its own flowcell that follows
// it, is given up for good: then the flowcell did not keep to one path.
type numbering uint8

const (
	unnumbered numbering = 255
	numbered   numbering = 254
	// Below: how many consecutive segments counted on, and whether a flowcell
	// began among them.
	boundarySeen numbering = 0x40
	countedOn    numbering = 0x3f
)

// enoughNumbers is how many consecutive segments must count on.
const enoughNumbers = 8

// follow takes the numbers of two segments of which the second begins where the
// first ends, and returns what is known then.
func (n numbering) follow(prev, id flowcell.Number) numbering {
	switch {
	case n >= numbered:
		return n
	case max(prev.Index(), id.Index()) > flowcell.MaxIndex:
		return unnumbered
	case id == prev+1: // within a flowcell, for index 63 is none
	case id.Index() == 0 && cellsAhead(id, prev) == 1:
		n |= boundarySeen
	default:
		return 0
	}
	if n&countedOn < countedOn {
		n++
	}
	if n&boundarySeen != 0 && n&countedOn >= enoughNumbers {
		return numbered
	}
	return n
}

// cellsAhead is how many flowcells a lies ahead of b, modulo 1,024: negative if
// behind.
func cellsAhead(a, b flowcell.Number) int {
	return int(int16(uint16(a&^63)-uint16(b&^63))) >> 6
}

// sentAfter is how far a was sent after b if the sender counts, or numbers.
func sentAfter(a, b flowcell.Number) int { return int(int16(a - b)) }
