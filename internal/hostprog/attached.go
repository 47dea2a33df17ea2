package hostprog

import "weft/internal/kernel"

var (
	// ErrUplinkGone means that the device that a program was attached to does not exist
	// any more, or has left the network namespace. Attach anew when there is one again.
	ErrUplinkGone = kernel.ErrUplinkGone

	// ErrReplaced means that another Attach has put its program in this one's place.
	ErrReplaced = kernel.ErrReplaced
)

// ForeignProgram is a program of others at a hook where weft has one.
type ForeignProgram = kernel.ForeignProgram
