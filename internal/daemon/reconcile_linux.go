package daemon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"weft/internal/event"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/service"
)

// trouble is why weft does not do what it should, or not all of it.
type trouble struct {
	why     string
	retry   time.Time // when to try again
	hurried bool      // that is sooner than it was
}

// again makes the next try due.
func (t *trouble) again() { t.retry = time.Time{} }

// sooner makes the next try due soon, because something has changed. It is not due at once,
// because a try itself changes something.
func (t *trouble) sooner() {
	if soon := t.retry.Add(retrySoon - retryAfter); !t.retry.IsZero() && !t.hurried {
		t.retry, t.hurried = soon, true
	}
}

// A failed try is repeated after retryAfter, or after retrySoon if something changes
// meanwhile.
const (
	retryAfter = time.Second
	retrySoon  = 200 * time.Millisecond
)

// reconcile compares what weft owns with what is there, and mends the differences. Where it
// cannot, it takes weft out of the way.
func (d *daemon) reconcile(ctx context.Context, now time.Time) {
	defer d.event()()
	if !d.working {
		d.comeBack(ctx, now)
		return
	}
	at, err := d.kernel.look(d.place)
	if gone(err) {
		d.takeAway(err.Error())
		return
	}
	if err != nil {
		d.complain(now, err.Error())
		return
	}
	if at.uplink.Name != d.place.uplink.Name && at.uplink.Index == d.place.uplink.Index {
		d.log.Info(event.UplinkRenamed, fmt.Sprintf("uplink %s is now called %s", d.place.uplink.Name, at.uplink.Name), "uplink", at.uplink.Name, "was", d.place.uplink.Name)
	}
	was := d.place
	d.place = at
	if d.tellDead(was.ways) {
		d.tellUplinks(d.config)
	}
	switch u := at.uplink; {
	case d.config.tunnels(): // by whatever device
	case !u.Up:
		d.complain(now, fmt.Sprintf("uplink %s is down", u.Name))
		return
	case at.homeless:
		d.complain(now, fmt.Sprintf("this host has not its address %s any more", at.address))
		return
	case d.place.leastMTU() < d.place.mtu:
		d.takeAway(fmt.Sprintf("the MTU of %s is %d now, and was %d", at.uplink.Name, at.uplink.MTU, was.uplink.MTU))
		return
	}
	d.tellRefused()
	err = errors.Join(d.repairAll(), d.cutForwarded(), d.fitTrains(), d.mend(d.repairStatus()))
	d.tellOthers()
	switch {
	case gone(err):
		d.takeAway(err.Error())
	case err != nil:
		d.complain(now, err.Error())
	case !d.config.tunnels() && len(at.ways) == 0 && at.uplink.Dark:
		d.complain(now, fmt.Sprintf("uplink %s has no carrier", at.uplink.Name))
	case d.trouble.why != "":
		d.log.Info(event.Recovered, "all is right again, after: "+d.trouble.why, "after", d.trouble.why)
		d.trouble = trouble{}
	}
}

// tellRefused tells why nothing that switches say is believed, once.
func (d *daemon) tellRefused() {
	if d.follower == nil {
		return
	}
	if why := d.follower.refused(); why != d.unheard {
		if d.unheard = why; why != "" {
			d.log.Warn(event.SwitchesRefused, "warning: "+why, "why", why)
		} else {
			d.log.Info(event.SwitchesBelieved, "the switches' updates are believed")
		}
	}
}

// tellOthers tells which programs of others run in front of weft's, each once. Repair gets in
// front of them where it can; where the kernel has no TCX, a filter of a lower priority stays
// in front.
func (d *daemon) tellOthers() {
	var all []hostprog.ForeignProgram
	for _, part := range []any{d.spray, d.receiver} {
		if p, ok := part.(interface {
			Foreign() ([]hostprog.ForeignProgram, error)
		}); ok {
			found, err := p.Foreign()
			if err != nil {
				return // Repair says the same
			}
			all = append(all, found...)
		}
	}
	for _, p := range all {
		if p.Front && !slices.Contains(d.others, p) {
			d.log.Warn(event.Foreign, fmt.Sprintf("warning: %v: if it ends the chain, weft does not see those packets; have it attached behind", p), "program", p.String(), "hook", p.Hook)
		}
	}
	d.others = all
}

// repairAll mends everything, and tells of each thing that it has mended.
func (d *daemon) repairAll() (err error) {
	plan, err := d.config.plan(d.place)
	if err != nil {
		return err
	}
	if err := d.repairPrograms(); gone(err) { // then of much else, too
		return err
	}
	d.pace(d.config)
	d.schedule(d.config)
	return errors.Join(d.mend(d.setup.Repair(plan)), d.repairPrograms())
}

// changeSetUp changes the kernel from one plan to another. It first mends what others have
// changed, and reports that.
func (d *daemon) changeSetUp(from, to hostsetup.Plan) error {
	err := d.mend(d.setup.Repair(from))
	if err == nil && !reflect.DeepEqual(from, to) {
		_, err = d.setup.Repair(to)
	}
	return err
}

// glance mends what the kernel does not tell of, which is cheap to look at.
func (d *daemon) glance(now time.Time) {
	defer d.event()()
	if !d.working {
		return
	}
	err := errors.Join(d.mend(d.setup.RepairSettings()), d.repairPrograms())
	d.watchSupers()
	switch {
	case gone(err):
		d.takeAway(err.Error())
	case err != nil:
		d.complain(now, err.Error())
	}
}

// repairPrograms mends the programs at the uplink.
func (d *daemon) repairPrograms() (err error) {
	if d.spray != nil {
		err = d.mend(d.spray.Repair())
		d.tellLate()
	}
	if d.receiver != nil {
		err = errors.Join(err, d.mend(d.receiver.Repair()))
	}
	return err
}

// mend tells of each thing that was mended.
func (d *daemon) mend(did []string, err error) error {
	for _, what := range did {
		d.log.Info(event.Repaired, "repaired: "+what, "what", what)
	}
	d.repairs.Add(did...)
	return err
}

// complain tells what is wrong, once.
func (d *daemon) complain(now time.Time, why string) {
	why = service.OneLine(why)
	if why != d.trouble.why {
		d.log.Warn(event.Trouble, "trouble: "+why, "why", why)
	}
	d.trouble = trouble{why: why, retry: now.Add(retryAfter)}
}

// takeAway gets weft out of the way: packets follow the kernel's own routes until all can
// be brought back.
func (d *daemon) takeAway(why string) {
	why = service.OneLine(why)
	d.sayAway(why)
	if err := d.takeDown(0); err != nil && !gone(err) {
		d.log.Warnf(event.Trouble, "out of the way, but not all was undone: %v", err)
	}
	d.trouble = trouble{why: why}
}

// sayAway tells that packets go as the kernel's own routes have them, and why.
func (d *daemon) sayAway(why string) {
	d.log.Warn(event.OutOfTheWay, "out of the way, packets go as the kernel's routes have them: "+why, "why", why)
}

// comeBack tries to bring everything up again.
func (d *daemon) comeBack(ctx context.Context, now time.Time) {
	if now.Before(d.trouble.retry) {
		return
	}
	after, began := d.trouble.why, time.Now()
	if err := d.bringUp(ctx); err != nil {
		d.takeDown(0)
		d.complain(now.Add(time.Since(began)), err.Error()) // it may have waited for the gateway
		return
	}
	d.trouble = trouble{}
	d.repairs.Add("back at work, after: " + after)
	d.log.Info(event.BackAtWork, fmt.Sprintf("back at work: %s; it was out of the way because %s", d.describe(), after), "after", after)
}
