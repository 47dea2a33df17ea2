package daemon

import (
	"fmt"

	"weft/internal/event"
)

// settle decides what mode auto is. It tells that, and whether listed datagrams stay out of
// order, when either is news. No line begins as the summary does ("mode ..."): that one says that
// the daemon has started.
func (d *daemon) settle(c *Config) {
	before := d.settled
	c.begin(d.kernel.orders)
	if d.settled = c.auto; c.Mode == ModeAuto && d.settled != before {
		d.log.Info(event.Configured, fmt.Sprintf("auto chooses mode %s: %s", c.auto.mode, c.auto.why), "mode", c.auto.mode)
	}
	if unordered := len(c.Datagrams) > 0 && !(c.offloads() && c.receives()); unordered != d.disorder {
		if d.disorder = unordered; unordered {
			d.log.Warnf(event.Limited, "warning: datagrams that arrive are not put in order here, in mode %s with resequence %t; peers that spray them must leave this host out", c.modeText(), c.resequences())
		}
	}
}

// untilItCan asks until the answer is nil once, and does not ask again.
func untilItCan(ask func() error) func() error {
	can := false
	return func() error {
		if can {
			return nil
		}
		err := ask()
		can = err == nil
		return err
	}
}
