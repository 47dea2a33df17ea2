package schedulerd

import (
	"weft/internal/event"
	"weft/topology"
	"weft/topoupdate/listen"
)

// listen begins to hear the switches' topology updates, if that is wanted.
func (d *daemon) listen(f *File) (err error) {
	if !f.Updates.wanted() {
		return nil
	}
	d.updates, err = listen.Open(listen.Config{
		Interface: f.Updates.Interface, Topology: f.top, Address: f.Updates.address,
		Keys: f.keys(d.start), MaxAge: f.Updates.MaxAge,
		Deliver: func(t *topology.Topology) {
			if err := d.server.heard(t); err != nil {
				d.log.Warnf(event.Trouble, "topology updates: %v", err)
			}
		},
	})
	if err != nil {
		return f.lines.Errorf("updates.interface", "%w", err)
	}
	return nil
}

// deaf ends it.
func (d *daemon) deaf() {
	if d.updates != nil {
		d.updates.Close()
		d.updates = nil
	}
}

// relisten goes on with another configuration. What was heard counts on unless the topology
// is another one.
func (d *daemon) relisten(next *File) error {
	if d.updates == nil {
		return d.server.renew(next, d.start)
	}
	if changed, same := d.file.top.Diff(next.top); same && len(changed) == 0 {
		next.fabric = d.server.fabric()
		if err := d.server.renew(next, d.start); err != nil {
			return err
		}
		return d.updates.SetKeys(next.keys(d.start))
	}
	d.deaf()
	if err := d.server.renew(next, d.start); err != nil {
		return err
	}
	return d.listen(next)
}
