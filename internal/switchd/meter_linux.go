package switchd

import (
	"os"
	"strconv"

	"weft/fabric"
)

// meterDescriptor tells the program that begins anew by which descriptor it can
// read the meter: it is no longer allowed to look for it.
const meterDescriptor = "WEFT_SWITCH_METER"

// attachMeter has the ports metered, if that is wanted.
func (d *daemon) attachMeter(c Config) error {
	if !d.file.Meter.Enabled {
		return nil
	}
	cfg, err := d.file.meter(c)
	if err == nil {
		d.meter, err = fabric.AttachMeter(cfg)
	}
	if err != nil {
		return d.file.lines.Errorf("meter.enabled", "%w", err)
	}
	return nil
}

// passMeter returns the environment for the program that begins anew.
func (d *daemon) passMeter() (env []string, err error) {
	if d.meter == nil {
		return nil, nil
	}
	fd, err := d.meter.Descriptor()
	return []string{meterDescriptor + "=" + strconv.Itoa(fd)}, err
}

// inheritMeter takes over the meter of the program that this one was before.
func (d *daemon) inheritMeter(c Config) error {
	text := os.Getenv(meterDescriptor)
	os.Unsetenv(meterDescriptor)
	fd, err := strconv.Atoi(text)
	if !d.file.Meter.Enabled || err != nil {
		return nil
	}
	cfg, err := d.file.meter(c)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range cfg.Ports {
		names = append(names, p.Name)
	}
	// It works all the same.
	d.meter, d.noMeter = fabric.InheritMeter(fd, names)
	return nil
}

// status is the agent's, with what the ports' meters have measured.
func (d *daemon) status() Status {
	s := d.agent.Status()
	err := d.noMeter
	if d.meter != nil {
		s.Meters, err = d.meter.Ports()
	}
	if err != nil {
		s.MeterError = err.Error()
	}
	return s
}
