package switchd

import (
	"time"

	"weft/fabric"
)

// Meter says how the queues of the ports are measured, the same for all ports: see
// fabric.MeterPort.
type Meter struct {
	Enabled  bool               `yaml:"enabled"`
	RateMbit float64            `yaml:"rate_mbit,auto"` // 0: the topology's, the port's, or the device's
	ECN      fabric.QueueLength `yaml:"ecn"`
	ECNBytes int                `yaml:"ecn_bytes"`
	RED      RED                `yaml:"red"`
	Tau      time.Duration      `yaml:"tau,auto"`
	QCMUnit  int                `yaml:"qcm_unit"`
}

// RED is fabric.RED.
type RED struct {
	Action string             `yaml:"action"`
	Min    fabric.QueueLength `yaml:"min"`
	Max    fabric.QueueLength `yaml:"max"`
	MaxP   float64            `yaml:"max_p"`
	Weight float64            `yaml:"weight"`
	Gentle bool               `yaml:"gentle"`
}

// fabric returns what RED is to the ports: nothing if it is off.
func (r RED) fabric() fabric.RED {
	if r.Action == "off" {
		return fabric.RED{}
	}
	return fabric.RED{Min: r.Min, Max: r.Max, MaxP: r.MaxP, Weight: r.Weight, Gentle: r.Gentle, Mark: r.Action == "mark"}
}

// checkRED checks what does not depend on the ports.
func (f *File) checkRED() error {
	r := f.Meter.RED
	switch {
	case r.Action != "off" && r.Action != "drop" && r.Action != "mark":
		return f.lines.Errorf("meter.red.action", "%q is none of off, drop and mark", r.Action)
	case r.Action != "off" && (f.Meter.ECNBytes != 0 || f.Meter.ECN != (fabric.QueueLength{})):
		return f.lines.Errorf("meter.red.action", "is %s, and ecn marks, too; set ecn to 0 or action to off", r.Action)
	case !(r.MaxP >= 0.0001 && r.MaxP <= 1):
		return f.lines.Errorf("meter.red.max_p", "is %g, must be from 0.0001 to 1", r.MaxP)
	case !(r.Weight >= 0.0005 && r.Weight <= 1):
		return f.lines.Errorf("meter.red.weight", "is %g, must be from 0.0005 to 1", r.Weight)
	}
	for _, l := range []struct {
		key    string
		length fabric.QueueLength
	}{{"meter.red.min", r.Min}, {"meter.red.max", r.Max}} {
		if err := l.length.Check(); err != nil {
			return f.lines.Errorf(l.key, "%w", err)
		}
		if l.length == (fabric.QueueLength{}) {
			return f.lines.Errorf(l.key, "is 0, must be more")
		}
	}
	// Whichever the rate, lengths of the same kind compare.
	if (r.Min.Time == 0) == (r.Max.Time == 0) && r.Min.At(1e9) >= r.Max.At(1e9) {
		return f.lines.Errorf("meter.red.min", "is %v, must be less than max, %v", r.Min, r.Max)
	}
	return nil
}

// checkMeter checks what can be checked without looking at the ports.
func (f *File) checkMeter() error {
	m := f.Meter
	if err := m.ECN.Check(); err != nil {
		return f.lines.Errorf("meter.ecn", "%w", err)
	}
	switch {
	case m.RateMbit != 0 && !(m.RateMbit >= 0.008 && m.RateMbit <= 1e6):
		return f.lines.Errorf("meter.rate_mbit", "is %g, must be from 0.008 to 1000000, or auto", m.RateMbit)
	case m.ECNBytes < 0:
		return f.lines.Errorf("meter.ecn_bytes", "is %d, must be 0 or more", m.ECNBytes)
	case m.ECNBytes != 0 && m.ECN != (fabric.QueueLength{}):
		return f.lines.Errorf("meter.ecn_bytes", "is %d, and ecn is %v; remove ecn_bytes", m.ECNBytes, m.ECN)
	case m.Tau < 0 || m.Tau > time.Minute:
		return f.lines.Errorf("meter.tau", "is %v, must be more than 0 and at most 1m, or auto", m.Tau)
	case m.QCMUnit < 1:
		return f.lines.Errorf("meter.qcm_unit", "is %d, must be 1 or more", m.QCMUnit)
	}
	return f.checkRED()
}

// meter is the meter of a switch.
func (f *File) meter(c Config) (m fabric.MeterConfig, err error) {
	plan, err := c.plan(c.Topology)
	if err != nil {
		return m, err
	}
	for _, port := range c.Topology.Ports(c.Self) {
		p := fabric.MeterPort{Name: plan.Ports[port.Index].Name, RateBits: f.Meter.RateMbit * 1e6,
			ECN: f.Meter.ECN, ECNBytes: f.Meter.ECNBytes, RED: f.Meter.RED.fabric(), Tau: f.Meter.Tau, QCMUnit: f.Meter.QCMUnit}
		if p.RateBits == 0 {
			p.RateBits = c.Topology.Rate(port.Link) * 1e6
		}
		m.Ports = append(m.Ports, p)
	}
	m.Extensions = f.extensions()
	return m, nil
}
