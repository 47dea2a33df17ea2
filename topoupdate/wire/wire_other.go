//go:build !linux

package wire

import (
	"errors"
	"time"
)

// Ports exist on Linux only.
type Ports struct{}

// Open fails: devices are watched by Linux's netlink.
func Open(Config) (*Ports, error) {
	return nil, errors.New("topology updates: need Linux, whose netlink tells of the ports' carrier")
}

// Missing, and all that follows, is never reached: there are no Ports.
func (*Ports) Missing() []string { return nil }

// Wait returns at once.
func (*Ports) Wait(time.Time, Handler) error { return errors.ErrUnsupported }

// Send does nothing.
func (*Ports) Send(int, []byte) {}

// Stats are empty.
func (*Ports) Stats() Stats { return Stats{} }

// Close does nothing.
func (*Ports) Close() error { return nil }
