//go:build !linux

package walker

import (
	"context"
	"errors"

	"weft/internal/exitcode"
	"weft/internal/hops"
)

// Run fails.
func Run(context.Context, *hops.Walk, []string, func()) error {
	return exitcode.AsAbsent(errors.New("paths are walked with the raw and packet sockets of Linux; run it there"))
}
