//go:build !linux

package switchd

import (
	"errors"

	"weft/topology"
)

// repair is Linux's.
type repair struct{}

func startRepair(Config) (*repair, error) {
	return nil, errors.New("routes are kept on Linux only")
}

func (*repair) set(*topology.Topology) {}
func (*repair) resync()                {}
func (*repair) status() *RouteStats    { return nil }
func (*repair) repairs() *Repairs      { return nil }
func (*repair) close()                 {}
