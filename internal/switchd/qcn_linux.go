package switchd

import (
	"time"

	"weft/fabric"
	"weft/internal/event"
)

// tell begins to tell the senders of packets that make queues too long, if that is wanted.
func (d *daemon) tell(c Config) error {
	if d.meter == nil || !d.file.Meter.QCN.on() {
		return nil
	}
	plan, err := c.plan(c.Topology)
	if err != nil {
		return err
	}
	names := make([]string, len(plan.Ports))
	for i, p := range plan.Ports {
		names[i] = p.Name
	}
	keys := d.file.keys(d.origin)
	d.keys.Store(&keys)
	d.teller, err = d.meter.Tell(fabric.TellerConfig{
		Host: sends(c.Topology, c.Self, names), // not d.file, which a reload replaces meanwhile
		Key: func() (uint8, []byte) {
			key, _ := d.keys.Load().Signing(time.Since(d.start))
			return key.ID, key.Secret
		},
		Ended: func(err error) {
			d.log.Warnf(event.Limited, "senders are told of congestion no more, until this agent starts again: %v", err)
		},
	})
	if err != nil {
		return d.file.lines.Errorf("meter.qcn.target", "%w", err)
	}
	return nil
}

// endTelling ends what tell has begun.
func (d *daemon) endTelling() {
	if d.teller == nil {
		return
	}
	if err := d.teller.Close(); err != nil {
		d.log.Warnf(event.Limited, "warning: feedback to senders: %v", err)
	}
}
