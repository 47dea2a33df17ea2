//go:build !linux

package socket

import (
	"errors"

	"weft/internal/capture"
	"weft/internal/exitcode"
)

// Config says what is seen.
type Config struct {
	Device, Name string
	Snap, Ring   int
}

// Socket sees the packets of a device.
type Socket struct{}

// Open fails.
func Open(Config) (*Socket, error) {
	return nil, exitcode.AsAbsent(errors.New("captures of devices need Linux: they are made with packet sockets"))
}

func (s *Socket) Name() string                    { return "" }
func (s *Socket) Run(func(*capture.Record)) error { return nil }
func (s *Socket) Seen() uint64                    { return 0 }
func (s *Socket) Dropped() uint64                 { return 0 }
func (s *Socket) Stop()                           {}
func (s *Socket) Close() error                    { return nil }
