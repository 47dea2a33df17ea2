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
	Tau      time.Duration      `yaml:"tau,auto"`
	QCMUnit  int                `yaml:"qcm_unit"`
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
			ECN: f.Meter.ECN, ECNBytes: f.Meter.ECNBytes, Tau: f.Meter.Tau, QCMUnit: f.Meter.QCMUnit}
		if p.RateBits == 0 {
			p.RateBits = c.Topology.Rate(port.Link) * 1e6
		}
		m.Ports = append(m.Ports, p)
	}
	return m, nil
}
