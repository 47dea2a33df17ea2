package daemon

import (
	"fmt"

	"weft/internal/congestion"
)

// leaveControl brings the congestion control weft_dctcp, if the configuration names it, for
// the process that begins anew with fewer privileges. It returns a variable of that one's
// environment, "" for none.
func (c *Config) leaveControl() (env string, err error) {
	if c.CongestionControl != congestion.Name {
		return "", nil
	}
	r, err := congestion.Register()
	if err != nil {
		return "", c.lines.Errorf("congestion_control", "%w", err)
	}
	return r.Leave()
}

// keepControl takes over what leaveControl has left, or brings the congestion control where
// no privileges were dropped. It is nil where neither was asked for.
func (c *Config) keepControl() (*congestion.Registration, error) {
	if r := congestion.Take(); r != nil || c.CongestionControl != congestion.Name {
		return r, nil
	}
	r, err := congestion.Register()
	if err != nil {
		return nil, c.lines.Errorf("congestion_control", "%w", err)
	}
	return r, nil
}

// checkControl says why a configuration's congestion control cannot be used.
func (d *daemon) checkControl(c *Config) error {
	var err error
	switch name := c.CongestionControl; {
	case name == "":
	case name == congestion.Name && d.control == nil:
		err = fmt.Errorf("%s is brought when the daemon starts; restart it (systemctl restart weft-host)", name)
	default:
		if err = d.kernel.control(name); err != nil && name != congestion.Name {
			err = fmt.Errorf("%w; or use %s, which weft brings", err, congestion.Name)
		}
	}
	if err != nil {
		return c.lines.Errorf("congestion_control", "%w", err)
	}
	return nil
}
