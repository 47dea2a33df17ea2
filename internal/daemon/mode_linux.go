package daemon

// settle decides what mode auto is, and tells it if it is news.
func (d *daemon) settle(c *Config) {
	before := d.settled
	c.begin(d.kernel.orders)
	if d.settled = c.auto; c.Mode == ModeAuto && d.settled != before {
		d.log.Printf("of mode auto: mode %s, since %s", c.auto.mode, c.auto.why)
	}
	if unordered := len(c.Datagrams) > 0 && !(c.offloads() && c.receives()); unordered != d.disorder {
		if d.disorder = unordered; unordered {
			d.log.Printf("warning: datagrams that arrive are not put in order here, in mode %s with resequence %t; peers that spray them must leave this host out", c.modeText(), c.resequences())
		}
	}
}

// untilItCan asks until the answer is once that it can: that stays so.
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
