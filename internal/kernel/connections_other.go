//go:build !linux

package kernel

import (
	"errors"

	"weft/internal/exitcode"
)

// Connections needs Linux.
func Connections() ([]Connection, error) {
	return nil, exitcode.AsAbsent(errors.New("needs the socket tables of Linux; run it on the host whose connections they are"))
}
