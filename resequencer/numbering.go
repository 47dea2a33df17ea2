package resequencer

import "weft/flowcell"

// numbering is what is known of a sender's IPv4 IDs or IPv6 flow labels: whether each is a
// flowcell.Number.
//
// A gap within a flowcell means loss only if the sender numbers its flowcells. So the
// numbers are believed after a proof: some consecutive segments have consecutive indices,
// or all have index 0, as in IPv6, and a new flowcell begins among them. A plain counter
// would use the index that weft never uses before it begins a flowcell. Constants and
// random numbers do not count on. If a segment arrives behind a later one of its own
// flowcell, the flowcell did not keep to one path, and the flow's numbers are never believed
// again. Without indices that cannot be seen.
type numbering uint8

const (
	unnumbered numbering = 255
	numbered   numbering = 254
	// The fields below say how many consecutive segments counted on, and whether a
	// flowcell began among them.
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
	case id == prev && id.Index() == 0: // the same, of IPv6
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
