package faults

import (
	"net"

	"weft/internal/kernel/disturb"
)

// swapped swaps the cables by which a switch is wired to two others.
func swapped(at, x, y string) func(*Bed) (func() error, error) {
	return func(b *Bed) (func() error, error) {
		var far [2]net.HardwareAddr
		for i, other := range []string{x, y} {
			err := b.do(other, func() error {
				dev, err := net.InterfaceByName(b.port(other, at))
				if err == nil {
					far[i] = dev.HardwareAddr
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		var c *disturb.Crossed
		if err := b.do(at, func() (err error) { c, err = disturb.Cross([2]string{b.port(at, x), b.port(at, y)}, far); return err }); err != nil {
			return nil, err
		}
		return c.Close, nil
	}
}
