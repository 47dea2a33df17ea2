//go:build !linux

package main

import (
	"io"

	"weft/internal/overview"
)

// terminalSize returns a usual size: the daemons run on Linux.
func terminalSize(io.Writer) (rows, columns int, terminal bool) { return overview.MinRows, 120, false }
