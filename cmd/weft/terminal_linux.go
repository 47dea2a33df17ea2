package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/overview"
)

// wideEnough is how long lines are where nobody looks at a terminal.
const wideEnough = 120

// terminalSize returns the size of the terminal that w is, or a usual one.
func terminalSize(w io.Writer) (rows, columns int, terminal bool) {
	f, ok := w.(*os.File)
	if !ok {
		return overview.MinRows, wideEnough, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return overview.MinRows, wideEnough, false
	}
	return int(size.Row), int(size.Col), true
}
