package switchd

import (
	"strings"
	"time"

	"weft/encap"
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
	QCN      QCN                `yaml:"qcn"`
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

// fabric returns what RED is to the ports, unless it is off.
func (r RED) fabric() fabric.RED {
	return fabric.RED{Min: r.Min, Max: r.Max, MaxP: r.MaxP, Weight: r.Weight, Gentle: r.Gentle, Mark: r.Action == "mark"}
}

// checkRED checks what does not depend on the ports.
func (f *File) checkRED() error {
	r := f.Meter.RED
	switch {
	case r.Action != "off" && r.Action != "drop" && r.Action != "mark":
		return f.lines.Errorf("meter.red.action", "%q is unknown; use off, drop or mark", r.Action)
	case r.Action != "off" && (f.Meter.ECNBytes != 0 || f.Meter.ECN != (fabric.QueueLength{})):
		return f.lines.Errorf("meter.red.action", "is %s, and ecn marks, too; set ecn to 0 or action to off", r.Action)
	}
	return f.redError(r.fabric().Check())
}

// redError names the key of a field of fabric.RED that err is about. It is nil if err is
// about none.
func (f *File) redError(err error) error {
	if err == nil {
		return nil
	}
	for _, field := range []struct{ name, key string }{{"RED.Min ", "min"}, {"RED.Max ", "max"}, {"RED.MaxP ", "max_p"}, {"RED.Weight ", "weight"}} {
		if strings.Contains(err.Error(), field.name) {
			return f.lines.Errorf("meter.red."+field.key, "%w", err)
		}
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
	case m.QCMUnit != encap.QCMUnit:
		return f.lines.Errorf("meter.qcm_unit", "is %d, but hosts take queues in samples to be in units of %d bytes, and add up those of several switches; leave it out", m.QCMUnit, encap.QCMUnit)
	}
	if err := f.checkRED(); err != nil {
		return err
	}
	if err := f.checkQCN(); err != nil || m.Enabled {
		return err
	}
	for _, key := range []struct {
		name  string
		given bool
	}{{"ecn", m.ECN != (fabric.QueueLength{})}, {"ecn_bytes", m.ECNBytes != 0}, {"red.action", m.RED.Action != "off"}, {"qcn.target", m.QCN.on()}} {
		if key.given {
			return f.lines.Errorf("meter."+key.name, "meter.enabled is false, so this does nothing; set meter.enabled to true, or remove this")
		}
	}
	return nil
}

// meter is the meter of a switch.
func (f *File) meter(c Config) (m fabric.MeterConfig, err error) {
	plan, err := c.plan(c.Topology)
	if err != nil {
		return m, err
	}
	for _, port := range c.Topology.Ports(c.Self) {
		p := fabric.MeterPort{Name: plan.Ports[port.Index].Name, RateBits: f.Meter.RateMbit * 1e6,
			ECN: f.Meter.ECN, ECNBytes: f.Meter.ECNBytes, Tau: f.Meter.Tau, QCMUnit: f.Meter.QCMUnit, QCN: f.Meter.QCN.fabric()}
		if f.Meter.RED.Action != "off" {
			p.RED = f.Meter.RED.fabric()
		}
		if p.RateBits == 0 {
			p.RateBits = c.Topology.Rate(port.Link) * 1e6
		}
		m.Ports = append(m.Ports, p)
	}
	m.Extensions = f.extensions()
	return m, nil
}
