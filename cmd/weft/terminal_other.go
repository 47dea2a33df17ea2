//go:build !linux

package main

import "io"

// terminalSize returns a usual size: the daemons run on Linux.
func terminalSize(io.Writer) (rows, columns int, terminal bool) { return usualRows, wideEnough, false }
