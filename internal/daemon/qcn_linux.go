package daemon

import (
	"errors"

	"golang.org/x/sys/unix"

	"weft/internal/event"
	"weft/internal/pacing"
	"weft/internal/qcn"
)

// pacer is *pacing.Host.
type pacer interface {
	SetSecret(func(key uint8) []byte)
	Stats() pacing.Stats
	Close() error
}

// pace begins to slow connections that make queues too long, for the whole run. Without it the
// host works, and switches' messages have no effect. Where the address is not there yet or the
// port is taken, the next repair tries again. All else is for good: what loads the program is
// gone with the privileges.
func (d *daemon) pace(c *Config) {
	if !c.QCN.Enabled || d.paced {
		return
	}
	const bytes = 1e6 / 8
	self, _ := c.fabric.ByAddr(d.place.address)
	limit, floor, increase := c.qcnRates(c.fabric, self)
	p, err := d.kernel.pace(pacing.Config{Address: d.place.address, Secret: c.qcnSecret(),
		Reactions: qcn.Config{Limit: limit * bytes, Floor: floor * bytes, Increase: increase * bytes}})
	d.paced = !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EADDRINUSE)
	if err != nil {
		if why := err.Error(); why != d.unpaced {
			d.unpaced = why
			d.log.Warnf(event.Limited, "warning: no connection is slowed for switches with meter.qcn: %s", why)
		}
		return
	}
	d.pacer = p
	d.log.Infof(event.Configured, "connections slow down to %g Mbit/s at least where switches say so, from %g", floor, limit)
}

// paceByKeys has messages checked by the keys in force.
func (d *daemon) paceByKeys() {
	if d.pacer != nil {
		d.pacer.SetSecret(d.config.qcnSecret())
	}
}

func (d *daemon) pacingStatus() any {
	if d.pacer == nil {
		return nil
	}
	return d.pacer.Stats()
}
