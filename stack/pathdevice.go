package stack

import (
	"sync/atomic"

	"weft/internal/lookout"
	"weft/liveness"
	"weft/topology"
)

// pathDevice tells a PathDevice which paths are in use. Its owner sees to it that calls of
// tell do not overlap.
type pathDevice struct {
	PathDevice
	journal  *lookout.Journal
	topology *topology.Topology // that the device knows
	carriage *liveness.Carriage // the same
	untold   atomic.Uint64      // times that it did not take one of the two
}

// tell tells the device what is new to it.
func (d *pathDevice) tell(t *topology.Topology, c *liveness.Carriage) error {
	err := d.learn(t, c)
	d.journal.Device(err)
	if err != nil {
		d.untold.Add(1)
	}
	return err
}

func (d *pathDevice) learn(t *topology.Topology, c *liveness.Carriage) error {
	if t != d.topology {
		if err := d.SetTopology(t); err != nil {
			return err
		}
		d.topology = t
	}
	if c != d.carriage {
		if err := d.SetCarriage(c); err != nil {
			return err
		}
		d.carriage = c
	}
	return nil
}
