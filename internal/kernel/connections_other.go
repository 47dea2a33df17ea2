//go:build !linux

package kernel

import "errors"

// Connections needs Linux.
func Connections() ([]Connection, error) {
	return nil, errors.New("needs the socket tables of Linux; run it on the host whose connections they are")
}
