package switchd

import (
	"net/netip"
	"time"

	"weft/fabric"
	"weft/topology"
)

// tell begins to tell the senders of packets that make queues too long, if that is wanted.
func (d *daemon) tell() (err error) {
	if d.meter == nil || !d.file.Meter.QCN.on() {
		return nil
	}
	keys := d.file.keys(d.origin)
	d.keys.Store(&keys)
	top := d.file.fabric // not d.file, which a reload replaces meanwhile
	d.teller, err = d.meter.Tell(fabric.TellerConfig{
		Host: func(a netip.Addr) bool {
			id, ok := top.ByAddr(a)
			return ok && top.Node(id).Layer == topology.LayerHost
		},
		Key: func() (uint8, []byte) {
			key, _ := d.keys.Load().Signing(time.Since(d.start))
			return key.ID, key.Secret
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
		d.log.Printf("warning: feedback to senders: %v", err)
	}
}
