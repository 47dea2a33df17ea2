package fabric

// Where the verdicts of tc programs are: linux/pkt_cls.h.
const (
	tcUnspec = -1 // go on with the next filter
	tcShot   = 2  // drop
)
