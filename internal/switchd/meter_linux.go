package switchd

import (
	"encoding/json"
	"errors"
	"fmt"

	"weft/fabric"
)

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
	d.extensions = d.meter.Extensions()
	for _, e := range d.extensions {
		if e.Error != "" {
			d.log.Printf("extension %s is left out: %s", e.Extension, e.Error)
		} else {
			d.log.Printf("extension %s: runs", e.Extension)
		}
	}
	return nil
}

// inheritMeter takes over the meter of the program that this one was before.
func (d *daemon) inheritMeter(c Config, descriptors, extensions string) error {
	if extensions != "" {
		if err := json.Unmarshal([]byte(extensions), &d.extensions); err != nil {
			return fmt.Errorf("%s: %w", extensionStatuses, err)
		}
	}
	if !d.file.Meter.Enabled || descriptors == "" {
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
	d.meter, d.noMeter = fabric.InheritMeter(descriptors, names)
	return nil
}

// status is the agent's, with what the ports' meters have measured and the programs
// have counted.
func (d *daemon) status() Status {
	s := d.agent.Status()
	s.Extensions = d.extensions
	err := d.noMeter
	if d.meter != nil {
		s.Meters, err = d.meter.Ports()
	}
	if err != nil {
		s.MeterError = err.Error()
	}
	d.balanceStatus(&s)
	if d.setup == nil {
		return s
	}
	var errs [3]error
	s.Decap, errs[0] = d.setup.Counters()
	s.Edge, errs[1] = d.setup.EdgeCounters()
	s.Labels, errs[2] = d.setup.LabelCounters()
	if err := errors.Join(errs[:]...); err != nil {
		s.CounterError = err.Error()
	}
	return s
}
