package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns the size of the terminal that w is, or a usual one.
func terminalSize(w io.Writer) (rows, columns int, terminal bool) {
	f, ok := w.(*os.File)
	if !ok {
		return usualRows, wideEnough, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return usualRows, wideEnough, false
	}
	if size.Row == 0 || size.Col == 0 { // a serial line does not say
		return usualRows, 80, true
	}
	return int(size.Row), int(size.Col), true
}
