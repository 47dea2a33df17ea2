package kernel

// Where the verdicts of tc programs are: linux/pkt_cls.h.
const (
	TCUnspec = -1 // go on with the next filter
	TCShot   = 2  // drop
)
