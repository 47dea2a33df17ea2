package switchd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"weft/fabric"
	"weft/internal/event"
)

// attachMeter has the ports metered, if that is wanted. Otherwise it removes what an earlier
// run has left, which may drop packets (RED).
func (d *daemon) attachMeter(c Config) error {
	if !d.file.Meter.Enabled {
		return d.detachMeter(c)
	}
	cfg, err := d.file.meter(c)
	if err == nil {
		d.meter, err = fabric.AttachMeter(cfg)
	}
	if named := cmp.Or(d.file.redError(err), d.file.qcnError(err)); named != nil {
		return named
	}
	if err != nil {
		return d.file.lines.Errorf("meter.enabled", "%w", err)
	}
	d.extensions = d.meter.Extensions()
	for _, e := range d.extensions {
		if e.Error != "" {
			d.log.Warnf(event.Limited, "extension %s is left out: %s", e.Extension, e.Error)
		} else {
			d.log.Infof(event.Configured, "extension %s: runs", e.Extension)
		}
	}
	return nil
}

// detachMeter removes the meters of an earlier run. That they cannot be looked for is no
// reason not to start: without privileges there may be none.
func (d *daemon) detachMeter(c Config) error {
	cfg, err := d.file.meter(c)
	if err != nil {
		return err
	}
	n, err := fabric.DetachMeter(portNames(cfg.Ports))
	if n > 0 {
		d.log.Infof(event.Repaired, "removed the meters of an earlier run from %d ports", n)
	}
	if err != nil {
		d.log.Warnf(event.Limited, "note: meters of an earlier run cannot be looked for: %v", err)
	}
	return nil
}

func portNames(ports []fabric.MeterPort) (names []string) {
	for _, p := range ports {
		names = append(names, p.Name)
	}
	return names
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
	// The meter works all the same. Its extensions end: nobody has them open.
	if d.meter, d.noMeter = fabric.InheritMeter(descriptors, portNames(cfg.Ports)); d.noMeter != nil {
		for i := range d.extensions {
			if e := &d.extensions[i]; e.Error == "" {
				e.Error = "it has ended, as the meter could not be taken over: " + d.noMeter.Error()
			}
		}
	}
	return nil
}

// status is the agent's, with what the ports' meters have measured and the programs
// have counted.
func (d *daemon) status() Status {
	d.asking.Lock()
	defer d.asking.Unlock()
	s := d.agent.Status()
	s.Extensions = d.extensions
	if d.ended {
		return s
	}
	err := d.noMeter
	if d.meter != nil {
		s.Meters, err = d.meter.Ports()
	}
	if err != nil {
		s.MeterError = err.Error()
	}
	if d.teller != nil {
		told := d.teller.Stats()
		s.Feedback = &told
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
