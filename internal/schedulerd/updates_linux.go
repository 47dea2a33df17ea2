package schedulerd

import (
	"errors"
	"time"

	"weft/internal/event"
	"weft/topology"
	"weft/topoupdate/listen"
)

// listen begins to hear the switches' topology updates, if that is wanted.
func (d *daemon) listen(f *File) error {
	if !f.Updates.wanted() {
		return nil
	}
	l, err := d.open(f)
	if err != nil {
		return err
	}
	d.hear(l, true)
	return nil
}

// listener hears topology updates, and holds them back until it is released.
type listener struct {
	*listen.Listener
	opened   time.Time
	counts   bool          // what it hears; set before released is closed
	released chan struct{} // closed when hear is called
}

// open opens a listener.
func (d *daemon) open(f *File) (*listener, error) {
	l := &listener{opened: time.Now(), released: make(chan struct{})}
	var err error
	l.Listener, err = listen.Open(listen.Config{
		Interface: f.Updates.Interface, Topology: f.top, Address: f.Updates.address,
		Keys: f.keys(l.opened), MaxAge: f.Updates.MaxAge,
		Deliver: func(t *topology.Topology) {
			if <-l.released; !l.counts {
				return
			}
			if err := d.server.heard(t); err != nil {
				d.log.Warnf(event.Trouble, "topology updates: %v", err)
			}
		},
	})
	if err != nil {
		return nil, f.lines.Errorf("updates.interface", "%w", err)
	}
	return l, nil
}

// hear releases a listener. If it does not count it ends.
func (d *daemon) hear(l *listener, counts bool) {
	l.counts = counts
	close(l.released)
	if counts {
		d.updates = l
	} else {
		l.Close()
	}
}

// hearAgain has another listener take over from one that has ended by itself.
func (d *daemon) hearAgain() {
	if !d.file.Updates.wanted() {
		return
	}
	why := "there was none"
	if d.updates != nil {
		if why = d.updates.Status().Error; why == "" {
			return
		}
	}
	if err := d.listenAnew(d.file); err != nil {
		d.log.Warnf(event.Trouble, "topology updates are not heard, so links that fail keep their placements: %s; trying again: %v", why, err)
		return
	}
	d.log.Warnf(event.Trouble, "topology updates are heard again; what had ended it: %s", why)
}

// listenAnew has another listener, of what a file says, take the place of the one that there is. What
// was heard counts no more.
func (d *daemon) listenAnew(f *File) error {
	l, err := d.open(f)
	if err != nil {
		return err
	}
	d.deaf() // what it hears would count instead of what the file says
	err = d.server.renew(f, d.start, false)
	d.hear(l, err == nil)
	return err
}

// deaf ends it.
func (d *daemon) deaf() {
	if d.updates != nil {
		d.updates.Close()
		d.updates = nil
	}
}

// relisten goes on with another configuration. What was heard counts on unless the topology is another
// one: then another listener takes over. If it cannot, all is as it was.
func (d *daemon) relisten(next *File) error {
	if !next.Updates.wanted() {
		return d.server.renew(next, d.start, false)
	}
	if changed, same := d.file.top.Diff(next.top); d.updates != nil && same && len(changed) == 0 {
		if err := d.server.renew(next, d.start, true); err != nil {
			return err
		}
		return d.updates.SetKeys(next.keys(d.updates.opened))
	}
	err := d.listenAnew(next)
	if err != nil && d.updates == nil { // it has ended what there was
		err = errors.Join(err, d.listen(d.file))
	}
	return err
}
