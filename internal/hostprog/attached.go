package hostprog

import "weft/internal/kernel"

var (
	// ErrUplinkGone means that the program's device does not exist any more, or has left
	// the network namespace. Attach again when there is a device.
	ErrUplinkGone = kernel.ErrUplinkGone

	// ErrReplaced means that another Attach has replaced this program.
	ErrReplaced = kernel.ErrReplaced
)

// ForeignProgram is another owner's program at a hook that weft uses.
type ForeignProgram = kernel.ForeignProgram
