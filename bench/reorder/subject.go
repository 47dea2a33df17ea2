package reorder

// subject is an implementation under measurement.
type subject interface {
	// prepare makes of b what push takes. It is not timed.
	prepare(b *batch)
	// push pushes b, and delivers what is due then. It alone is timed.
	push(b *batch)
	// collect returns the names of what was delivered since, in order, and in
	// how many pieces it was. It is not timed; names are good until push.
	collect(b *batch) (names []int, pieces int, err error)
	// flush delivers all that is held, to be collected.
	flush()
	// state returns the most that was ever held, in bytes of packets, or what
	// makes the measurement worthless.
	state() (maxHeld int, err error)
}
