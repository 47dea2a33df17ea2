package conga

const (
	// Tags is how many LBTags there are: 4 bits (CONGA §3.1).
	Tags = 16
	// MaxMetric is the highest metric: 3 bits (Q, CONGA §3.6), eighths of the
	// link's rate. 7 is whatever is above seven eighths.
	MaxMetric = 7
)

// Tag returns the LBTag of a path, one of so many to its destination. If there are no
// more paths than tags, it is the path's number. Otherwise it is the number of the path's
// first hop, the digit chosen at the edge switch, modulo Tags. Paths of one tag count as
// one.
func Tag(path, paths, first int) uint8 {
	if paths > Tags {
		path = first
	}
	return uint8(path % Tags)
}
